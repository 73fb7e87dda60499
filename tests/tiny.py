"""Tiny networks and batches, for tests that compare numbers in float64."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from flax import linen as nn

from moda_jax import config as config_lib
from moda_jax.config import option
from moda_jax.data.domains import Domain, Domains
from moda_jax.models import NETWORKS
from moda_jax.models.networks import Networks
from moda_jax.objectives import METHODS
from moda_jax.objectives.composition import compose
from moda_jax.training.options import base_config

CLASSES, FEATURES = 3, 5
LAYERS = 5  # of extractor and classifier, and a softmax


class Layers(nn.Module):
  """Dense layers with smooth activations, so that differences converge."""

  sizes: tuple[int, ...]
  axes: int = 1  # of one input; they are flattened

  @nn.compact
  def __call__(self, x, *, train=False):
    del train
    x = x.reshape(*x.shape[: x.ndim - self.axes], -1)
    for i, size in enumerate(self.sizes):
      x = nn.Dense(size)(x if i == 0 else jnp.tanh(x))
    return x


def create_networks(num_classes=CLASSES, axes=1):
  extractor = Layers((4, 6), axes)
  return Networks(extractor, Layers((5, num_classes)), Layers((5, 2)))


@dataclasses.dataclass(frozen=True)
class TinyImages:
  """Dense layers on images: they compile in a moment, unlike convolutions."""

  width: float = option(1.0)

  def create(self, num_classes, axis_name=None, variant=''):
    return create_networks(num_classes, axes=3)


NETWORKS['tiny images'] = TinyImages
VALUES = {
  'mu_d': 0.3,
  'mu_s': 0.2,
  'mu_c': 0.5,
  'tau': 0.4,
  'gamma': 10.0,
  'alpha_decay': 0.9,
  'moe_weight': 0.8,
  'moe_alignment': 0.3,
  'moe_entropy': 0.1,
  'moe_rank': 3,
  'm3sda_weight': 0.1,
  'adamatch_tau': 0.9,
  'dael_tau': 0.4,
}


# These differ from others in their weights or one term alone.
_ALIKE = ('moda_fm_floored', 'moda_fm_relative', 'moda_fm_projected', 'mdan_fm')
EVERY_METHOD = [
  pytest.param(name, marks=[pytest.mark.slow] if name in _ALIKE else [])
  for name in METHODS
]


def make_options(name, **values):
  """Returns the method's options: these values and, of `VALUES`, those read."""
  return fill_options(METHODS[name].Options, **values)


def fill_options(kind, **values):
  read = {field.name for field in dataclasses.fields(kind)}
  return kind(**{k: v for k, v in (VALUES | values).items() if k in read})


def make_method(name, sources=3, axis_name=None, **values):
  names = tuple('abcdefghij'[:sources])
  options = make_options(name, **values)
  return METHODS[name](create_networks(), names, options, axis_name)


def make_composition(names, sources=3, axis_name=None, **values):
  kind = compose(*names)
  options = fill_options(kind.Options, **values)
  return kind(
    create_networks(), tuple('abcdefghij'[:sources]), options, axis_name
  )


def make_batch(sources=3, size=8, seed=0):
  """Returns a batch with every view and label that any method may declare."""
  rng = np.random.default_rng(seed)
  weak = rng.normal(size=(sources, size, FEATURES))
  target = rng.normal(size=(size, FEATURES)) + 0.5
  rng_of_strong = np.random.default_rng(seed + 1)
  return {
    'source': {
      'weak': weak,
      'strong': weak + 0.3 * rng_of_strong.normal(size=weak.shape),
      'label': rng.integers(0, CLASSES, (sources, size)),
    },
    'target': {
      'weak': target,
      'strong': target + 0.3 * rng.normal(size=target.shape),
      'label': rng.integers(0, CLASSES, size),
    },
  }


def init(method, batch):
  """Returns random parameters and zero state, without compiling."""
  x = batch['target']['weak']
  params, state = jax.eval_shape(method.init, jax.random.key(0), x)
  rng = np.random.default_rng(0)
  params = jax.tree.map(
    lambda p: jnp.asarray(rng.normal(size=p.shape, scale=0.5)), params
  )
  return params, jax.tree.map(lambda s: jnp.zeros(s.shape), state)


def in_float64(x):
  return x.astype(jnp.float64) if jnp.issubdtype(x.dtype, jnp.floating) else x


def loss_and_grads(method, params, state, batch):
  grad_fn = jax.value_and_grad(method.loss_and_aux, has_aux=True)
  (loss, (metrics, _)), grads = jax.jit(grad_fn)(
    params, state, batch, jax.random.key(0), jnp.asarray(0)
  )
  return loss, metrics, grads


def make_domains(sizes=(40, 24, 30, 32, 21), seed=0):
  """Returns four small domains of real-size images; the last has a test set."""
  rng = np.random.default_rng(seed)
  prototypes = rng.integers(0, 256, (CLASSES, 32, 32, 3))

  def make(name, size):
    labels = rng.integers(0, CLASSES, size).astype(np.int32)
    images = prototypes[labels] // 2 + rng.integers(0, 128, (size, 32, 32, 3))
    classes = tuple(f'class {i}' for i in range(CLASSES))
    return Domain(name, 'random', images.astype(np.uint8), labels, classes)

  names = ('a', 'b', 'c', 't', 't')
  made = [make(*pair) for pair in zip(names, sizes, strict=True)]
  return Domains(tuple(made[:3]), made[3], made[4])


def make_sparse_domains(features=50, seed=0):
  """Returns the same domains with sparse counts of words for inputs."""
  rng = np.random.default_rng(seed)

  def make(domain):
    counts = rng.poisson(0.2, (domain.size, features)).astype(np.float32)
    return domain._replace(inputs=scipy.sparse.csr_array(counts))

  made = make_domains()
  sources = tuple(make(domain) for domain in made.sources)
  return Domains(sources, make(made.target), make(made.test))


def make_run_config(**values):
  """Returns a quick config for `make_domains`; values by leaf name."""
  config = base_config()
  config.experiment = 'random'
  config.data.datasets.update(dict.fromkeys('abct', 'random'))
  config.data.sources, config.data.target = ('a', 'b', 'c'), 't'
  config.network.name = 'tiny images'
  config.data.batch_size, config.run.steps = 8, 6
  run = config.run
  run.log_every = run.eval_every = run.checkpoint_every = 2
  config.optimizer.learning_rate = 1.0
  config.views.randaugment_exclude = ('FlipX',)
  config.run.eval_batch_size = 8
  return set_values(config, **values)


def set_values(config, **values):
  config.experiment = values.pop('experiment', config.experiment)
  for name, value in values.items():
    section, leaf = config_lib.full_name(config, name).split('.')
    config[section][leaf] = value
  return config


def train(workdir, start_from=None, **values):
  """Trains on made-up images, on one device; returns the outcome."""
  from moda_jax.training import loop  # takes a while to import

  config = make_run_config(**values)
  data = make_domains()
  return loop.train(config, workdir, data, devices=1, start_from=start_from)
