"""The networks of the digits experiment, for 32 × 32 colour images."""

import jax
import jax.numpy as jnp
from flax import linen as nn

from moda_jax.models.layers import bias_init, dense, kernel_init, scaled
from moda_jax.models.networks import Networks


def create_networks(num_classes: int, width: float = 1.0) -> Networks:
  """Returns the paper's digits networks, every hidden layer `width` as wide."""
  return Networks(
    extractor=Extractor(width),
    classifier=Classifier(num_classes, width),
    discriminator=Discriminator(width),
  )


class Extractor(nn.Module):
  """Images `[..., 32, 32, 3]` in 0..1 to features `[..., 8, 8, 256·width]`."""

  width: float = 1.0

  @nn.compact
  def __call__(self, x: jax.Array, *, train: bool = False) -> jax.Array:
    del train
    x = _conv(x, 64, self.width)
    x = _conv(_pool(x), 128, self.width)
    return _conv(_pool(x), 256, self.width)


class Classifier(nn.Module):
  """Features to `num_classes` logits."""

  num_classes: int
  width: float = 1.0

  @nn.compact
  def __call__(self, x: jax.Array, *, train: bool = False) -> jax.Array:
    del train
    x = _flatten(_conv(_pool(x), 256, self.width))
    x = nn.relu(dense(x, scaled(2048, self.width)))
    x = nn.relu(dense(x, scaled(1024, self.width)))
    return dense(x, self.num_classes)


class Discriminator(nn.Module):
  """Features to the logits of source (0) and target (1)."""

  width: float = 1.0

  @nn.compact
  def __call__(self, x: jax.Array, *, train: bool = False) -> jax.Array:
    del train
    x = _flatten(_pool(x))
    for features in (2048, 2048, 1024):
      x = nn.relu(dense(x, scaled(features, self.width)))
    return dense(x, 2)


def _conv(x: jax.Array, features: int, width: float) -> jax.Array:
  conv = nn.Conv(
    scaled(features, width),
    kernel_size=(3, 3),
    kernel_init=kernel_init,
    bias_init=bias_init(9 * x.shape[-1]),
  )
  return nn.relu(conv(x))


def _pool(x: jax.Array) -> jax.Array:
  """2 × 2 max-pooling; of equal values the first takes the gradient.

  Written out because XLA differentiates `nn.max_pool` to a scatter, which on
  CPUs takes some twenty times as long.
  """
  *batch, height, width, channels = x.shape
  x = x.reshape(*batch, height // 2, 2, width // 2, 2, channels)
  upper = _first_larger(x[..., 0, :, 0, :], x[..., 0, :, 1, :])
  lower = _first_larger(x[..., 1, :, 0, :], x[..., 1, :, 1, :])
  return _first_larger(upper, lower)


def _first_larger(a: jax.Array, b: jax.Array) -> jax.Array:
  return jnp.where(a >= b, a, b)


def _flatten(x: jax.Array) -> jax.Array:
  return x.reshape(*x.shape[:-3], -1)  # [..., H·W·C]
