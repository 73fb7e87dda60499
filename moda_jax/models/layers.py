"""Layers and how they start."""

import math

import jax
from flax import linen as nn

from moda_jax.errors import UserError

# The variance of a kernel times its fan-in is that of PyTorch's layers (1/3),
# of He et al. 2015 (2), which keeps the scale of activations through ReLUs, or
# of LeCun (1), Flax's own default. Deep stacks at PyTorch's stay at chance for
# thousands of steps.
KERNEL_INITS = {
  'torch': nn.initializers.variance_scaling(1 / 3, 'fan_in', 'uniform'),
  'he': nn.initializers.he_normal(),
  'lecun': nn.initializers.lecun_normal(),
}
# As configs name them: 'auto' is chosen with the network, see `fitting`.
INITS = (*KERNEL_INITS, 'auto')


def bias_init(init: str, fan_in: int) -> nn.initializers.Initializer:
  """Returns PyTorch's uniform in ±1/sqrt(fan_in) for 'torch', else zeros."""
  if init != 'torch':
    return nn.initializers.zeros
  bound = 1 / math.sqrt(fan_in)

  def draw(key: jax.Array, shape: tuple[int, ...], dtype: type) -> jax.Array:
    return jax.random.uniform(key, shape, dtype, -bound, bound)

  return draw


def scaled(features: int, width: float) -> int:
  """Returns the size of a hidden layer at `width`."""
  size = round(features * width)
  if not size:
    raise UserError(
      f'config.network.width = {width:g} leaves nothing of a layer of '
      f'{features}; it must be above {0.5 / features:g}.'
    )
  return size


def logits(x: jax.Array, features: int) -> jax.Array:
  """Applies the last layer, within a compact module.

  Whatever the layers before it start from, it starts small, as in PyTorch:
  otherwise a network is sure of itself before it has learned anything, and
  consistency trains it towards that.
  """
  return dense(x, features, 'torch')


def dense(x: jax.Array, features: int, init: str = 'torch') -> jax.Array:
  """Applies a fully connected layer, within a compact module."""
  return nn.Dense(
    features,
    kernel_init=KERNEL_INITS[init],
    bias_init=bias_init(init, x.shape[-1]),
  )(x)
