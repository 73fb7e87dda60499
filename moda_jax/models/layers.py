"""Layers that start as PyTorch's do, which the paper's networks start from."""

import math

import jax
from flax import linen as nn

# Uniform in ±1/sqrt(fan_in). Flax's default has three times the variance.
kernel_init = nn.initializers.variance_scaling(1 / 3, 'fan_in', 'uniform')


def bias_init(fan_in: int) -> nn.initializers.Initializer:
  """Uniform in ±1/sqrt(fan_in), `fan_in` being that of the layer's kernel."""
  bound = 1 / math.sqrt(fan_in)

  def init(key: jax.Array, shape: tuple[int, ...], dtype: type) -> jax.Array:
    return jax.random.uniform(key, shape, dtype, -bound, bound)

  return init


def scaled(features: int, width: float) -> int:
  """The size of a hidden layer at `width`, at least 1."""
  return max(1, round(features * width))


def dense(x: jax.Array, features: int) -> jax.Array:
  """A fully connected layer within a compact module."""
  return nn.Dense(
    features, kernel_init=kernel_init, bias_init=bias_init(x.shape[-1])
  )(x)
