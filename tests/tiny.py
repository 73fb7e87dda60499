"""Tiny networks and batches, for tests that compare numbers in float64."""

import jax
import jax.numpy as jnp
import ml_collections
import numpy as np
from flax import linen as nn

from moda_jax.models.networks import Networks
from moda_jax.objectives import METHODS

CLASSES, FEATURES = 3, 5


class Layers(nn.Module):
  """Dense layers with smooth activations, so that differences converge."""

  sizes: tuple[int, ...]

  @nn.compact
  def __call__(self, x, *, train=False):
    del train
    for i, size in enumerate(self.sizes):
      x = nn.Dense(size)(x if i == 0 else jnp.tanh(x))
    return x


def create_networks():
  return Networks(Layers((4, 6)), Layers((5, CLASSES)), Layers((5, 2)))


def make_config(**values):
  defaults = {'mu_d': 0.3, 'mu_s': 0.2, 'mu_c': 0.5, 'tau': 0.4}
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


def init(method, batch, seed=0):
  """Parameters in float64, away from any symmetry."""
  params, state = method.init(jax.random.key(seed), batch['target']['weak'])
  return jax.tree.map(lambda x: jnp.asarray(x, float), params), state


def loss_and_grads(method, params, state, batch):
  grad_fn = jax.value_and_grad(method.loss, has_aux=True)
  (loss, (metrics, _)), grads = grad_fn(
    params, state, batch, jax.random.key(0), jnp.asarray(0)
  )
  return loss, metrics, grads
