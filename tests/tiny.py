"""Tiny networks and batches, for tests that compare numbers in float64."""

import functools

import jax
import jax.numpy as jnp
import ml_collections
import numpy as np
import scipy.sparse
from flax import linen as nn

from moda_jax.config import base_config
from moda_jax.data.domains import Domain, Domains
from moda_jax.models import NETWORKS
from moda_jax.models.networks import Networks
from moda_jax.objectives import METHODS

CLASSES, FEATURES = 3, 5


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


def create_networks(num_classes=CLASSES, width=1.0, axes=1):
  del width
  extractor = Layers((4, 6), axes)
  return Networks(extractor, Layers((5, num_classes)), Layers((5, 2)))


# Compiles in a moment, unlike convolutions.
NETWORKS['tiny images'] = functools.partial(create_networks, axes=3)


def make_config(**values):
  defaults = {
    'width': 1.0,
    'mu_d': 0.3,
    'mu_s': 0.2,
    'mu_c': 0.5,
    'tau': 0.4,
    'gamma': 10.0,
    'alpha_hold': 0,
    'alpha_floor': 0.3,
    'alpha_decay': 0.9,
    'darn_gamma': 0.5,
    'moe_weight': 0.8,
    'moe_alignment': 0.3,
    'moe_entropy': 0.1,
    'moe_rank': 3,
    'm3sda_weight': 0.1,
  }
  return ml_collections.ConfigDict(defaults | values)


def make_method(name, sources=3, axis_name=None, **values):
  names = tuple('abcdefghij'[:sources])
  config = make_config(**values)
  return METHODS[name](create_networks(), names, config, axis_name)


def make_batch(sources=3, size=8, seed=0):
  """A batch with every view and label that any method may declare."""
  rng = np.random.default_rng(seed)
  weak = rng.normal(size=(sources, size, FEATURES))
  target = rng.normal(size=(size, FEATURES)) + 0.5
  return {
    'source': {
      'weak': weak,
      'label': rng.integers(0, CLASSES, (sources, size)),
    },
    'target': {
      'weak': target,
      'strong': target + 0.3 * rng.normal(size=target.shape),
      'label': rng.integers(0, CLASSES, size),
    },
  }


def init(method, batch):
  """Random parameters and zero state, with nothing to compile."""
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
  grad_fn = jax.value_and_grad(method.loss, has_aux=True)
  (loss, (metrics, _)), grads = jax.jit(grad_fn)(
    params, state, batch, jax.random.key(0), jnp.asarray(0)
  )
  return loss, metrics, grads


def make_domains(sizes=(40, 24, 30, 32, 21), seed=0):
  """Four small domains of real-size images, the last also with a test split."""
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
  """The same domains with sparse counts of words for inputs."""
  rng = np.random.default_rng(seed)

  def make(domain):
    counts = rng.poisson(0.2, (domain.size, features)).astype(np.float32)
    return domain._replace(inputs=scipy.sparse.csr_array(counts))

  made = make_domains()
  sources = tuple(make(domain) for domain in made.sources)
  return Domains(sources, make(made.target), make(made.test))


def make_run_config(**values):
  """A config for `make_domains` that takes a moment."""
  config = base_config()
  config.experiment = 'random'
  config.datasets.update(dict.fromkeys('abct', 'random'))
  config.sources, config.target = ('a', 'b', 'c'), 't'
  config.network = 'tiny images'
  config.batch_size, config.steps = 8, 6
  config.log_every = config.eval_every = config.checkpoint_every = 2
  config.learning_rate = 1.0
  config.randaugment_exclude = ('FlipX',)
  config.eval_batch_size = 8
  config.update(values)
  return config
