"""The networks of the digits experiment, for 32 × 32 colour images."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from moda_jax.errors import UserError
from moda_jax.models.layers import KERNEL_INITS, bias_init, dense, logits, scaled
from moda_jax.models.networks import Networks

_SIZE = 3  # of the kernels
_SHRINKAGE = 8  # of three poolings, the last in the heads


def create_networks(
  num_classes: int, width: float = 1.0, init: str = 'torch'
) -> Networks:
  """Returns the paper's digits networks.

  Args:
    num_classes: how many logits the classifier gives.
    width: the multiple of every hidden layer's size.
    init: how layers start, a name in `layers.KERNEL_INITS`.
  """
  return Networks(
    extractor=Extractor(width, init),
    classifier=Classifier(num_classes, width, init),
    discriminator=Discriminator(width, init),
  )


class Extractor(nn.Module):
  """Images `[..., 32, 32, 3]` in 0..1 to features `[..., 8, 8, 256·width]`.

  Other sizes serve too, if they are multiples of 8.
  """

  width: float = 1.0
  start: str = 'torch'

  @nn.compact
  def __call__(self, x: jax.Array, *, train: bool = False) -> jax.Array:
    del train
    if x.shape[-3] % _SHRINKAGE or x.shape[-2] % _SHRINKAGE:
      raise UserError(
        f'Images of {x.shape[-3]} × {x.shape[-2]}: the network for digits '
        f'takes multiples of {_SHRINKAGE}; see config.image_size.'
      )
    x = _conv(x, 64, self.width, self.start)
    x = _conv(_pool(x), 128, self.width, self.start)
    return _conv(_pool(x), 256, self.width, self.start)


class Classifier(nn.Module):
  """Features to `num_classes` logits."""

  num_classes: int
  width: float = 1.0
  start: str = 'torch'

  @nn.compact
  def __call__(self, x: jax.Array, *, train: bool = False) -> jax.Array:
    del train
    x = _flatten(_conv(_pool(x), 256, self.width, self.start))
    x = nn.relu(dense(x, scaled(2048, self.width), self.start))
    x = nn.relu(dense(x, scaled(1024, self.width), self.start))
    return logits(x, self.num_classes)


class Discriminator(nn.Module):
  """Features to the logits of source (0) and target (1)."""

  width: float = 1.0
  start: str = 'torch'

  @nn.compact
  def __call__(self, x: jax.Array, *, train: bool = False) -> jax.Array:
    del train
    x = _flatten(_pool(x))
    for features in (2048, 2048, 1024):
      x = nn.relu(dense(x, scaled(features, self.width), self.start))
    return logits(x, 2)


def _conv(x: jax.Array, features: int, width: float, init: str) -> jax.Array:
  conv = nn.Conv(
    scaled(features, width),
    kernel_size=(_SIZE, _SIZE),
    conv_general_dilated=_convolve,
    kernel_init=KERNEL_INITS[init],
    bias_init=bias_init(init, _SIZE**2 * x.shape[-1]),
  )
  return nn.relu(conv(x))


def _convolve(
  x: jax.Array, kernel: jax.Array, strides: Any, padding: Any, **options: Any
) -> jax.Array:
  """The convolution that `nn.Conv` asks for, by a product on CPUs.

  There XLA takes three to nine times as long for the same layer of several
  copies side by side, and for the first layer of one.
  """

  def convolve(x: jax.Array, kernel: jax.Array) -> jax.Array:
    return jax.lax.conv_general_dilated(x, kernel, strides, padding, **options)

  return jax.lax.platform_dependent(
    x, kernel, cpu=_multiply_patches, default=convolve
  )


def _multiply_patches(x: jax.Array, kernel: jax.Array) -> jax.Array:
  """Every pixel's surroundings in one row, times the kernel as a matrix."""
  *_, height, width, _ = x.shape
  margin = _SIZE // 2
  x = jnp.pad(x, ((0, 0), (margin, margin), (margin, margin), (0, 0)))
  shifted = [
    x[:, i : i + height, j : j + width]
    for i in range(_SIZE)
    for j in range(_SIZE)
  ]
  patches = jnp.concatenate(shifted, axis=-1)  # [N, H, W, 9·C]
  return patches @ kernel.reshape(-1, kernel.shape[-1])


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
