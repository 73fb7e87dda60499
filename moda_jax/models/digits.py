"""The networks of the digits experiment, for 32 × 32 colour images."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from moda_jax.config import option
from moda_jax.errors import UserError
from moda_jax.models.layers import (
  INITS,
  KERNEL_INITS,
  bias_init,
  dense,
  logits,
  scaled,
)
from moda_jax.models.networks import Networks

_SIZE = 3  # of the kernels
_MARGINS = ((0, 0), (1, 1), (1, 1), (0, 0))
_OFFSETS = [(i, j) for i in range(_SIZE) for j in range(_SIZE)]
_SHRINKAGE = 8  # of three poolings, the last in the heads


@dataclasses.dataclass(frozen=True)
class DigitsOptions:
  """Convolutions for images of 32 × 32, as in the paper's digits."""

  width: float = option(1.0, above=0)
  init: str = option('torch', choices=INITS)

  def create(
    self, num_classes: int, axis_name: str | None = None, variant: str = ''
  ) -> Networks:
    """See `NetworkOptions`; there are no batch statistics and no variants."""
    del axis_name, variant
    return create_networks(num_classes, self.width, self.init)


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
    width=width,
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
        f'takes multiples of {_SHRINKAGE}; see config.data.image_size.'
      )
    # Pooling first gives the same and leaves a quarter to rectify.
    x = nn.relu(_pool(_conv(x, 64, self.width, self.start)))
    x = nn.relu(_pool(_conv(x, 128, self.width, self.start)))
    return nn.relu(_conv(x, 256, self.width, self.start))


class Classifier(nn.Module):
  """Features to `num_classes` logits."""

  num_classes: int
  width: float = 1.0
  start: str = 'torch'

  @nn.compact
  def __call__(self, x: jax.Array, *, train: bool = False) -> jax.Array:
    del train
    x = nn.relu(_conv(_pool(x), 256, self.width, self.start))
    x = _flatten(x)
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
  return conv(x)


def _convolve(
  x: jax.Array, kernel: jax.Array, strides: Any, padding: Any, **options: Any
) -> jax.Array:
  """Computes the convolution of `nn.Conv`, on CPUs as a matrix product.

  There XLA takes three to nine times as long for the same layer of several
  copies side by side, and for the first layer of one.
  """

  def convolve(x: jax.Array, kernel: jax.Array) -> jax.Array:
    return jax.lax.conv_general_dilated(x, kernel, strides, padding, **options)

  return jax.lax.platform_dependent(
    x, kernel, cpu=_multiply_patches, default=convolve
  )


@jax.custom_vjp
def _multiply_patches(x: jax.Array, kernel: jax.Array) -> jax.Array:
  """Multiplies every pixel's surroundings, as a row, by the kernel as a matrix.

  Its gradient is written out so that the patches are kept rather than made
  again, and added in place.
  """
  return _multiply_and_keep(x, kernel)[0]


def _multiply_and_keep(
  x: jax.Array, kernel: jax.Array
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
  patches = _patches(x)
  y = patches @ _as_matrix(kernel)
  return y.reshape(*x.shape[:-1], -1), (patches, kernel)


def _multiply_backward(
  kept: tuple[jax.Array, jax.Array], g: jax.Array
) -> tuple[jax.Array, jax.Array]:
  patches, kernel = kept
  *pixels, features = g.shape
  g = g.reshape(-1, features)
  towards_kernel = (patches.T @ g).reshape(kernel.shape)
  towards_patches = (g @ _as_matrix(kernel).T).reshape(*pixels, -1)
  return _add_patches(towards_patches), towards_kernel


_multiply_patches.defvjp(_multiply_and_keep, _multiply_backward)


def _as_matrix(kernel: jax.Array) -> jax.Array:
  return kernel.reshape(-1, kernel.shape[-1])


def _patches(x: jax.Array) -> jax.Array:
  """Returns the surroundings of every pixel of `[N, H, W, C]`, `[NHW, 9C]`."""
  n, height, width, channels = x.shape
  x = jnp.pad(x, _MARGINS)
  patches = jnp.zeros((n, height, width, _SIZE**2 * channels), x.dtype)
  for k, (i, j) in enumerate(_OFFSETS):
    part = x[:, i : i + height, j : j + width]
    patches = patches.at[..., k * channels : (k + 1) * channels].set(part)
  return patches.reshape(n * height * width, -1)


def _add_patches(patches: jax.Array) -> jax.Array:
  """Returns the sum of every pixel's 9 places in `[N, H, W, 9C]`."""
  n, height, width, size = patches.shape
  channels = size // _SIZE**2
  x = jnp.pad(jnp.zeros((n, height, width, channels), patches.dtype), _MARGINS)
  for k, (i, j) in enumerate(_OFFSETS):
    part = patches[..., k * channels : (k + 1) * channels]
    x = x.at[:, i : i + height, j : j + width].add(part)
  return x[:, 1:-1, 1:-1]


def _pool(x: jax.Array) -> jax.Array:
  """2 × 2 max-pooling; of equal values the first takes the gradient."""

  def pool(x: jax.Array) -> jax.Array:
    return nn.max_pool(x, (2, 2), strides=(2, 2))

  return jax.lax.platform_dependent(x, cpu=_pool_quarters, default=pool)


@jax.custom_vjp
def _pool_quarters(x: jax.Array) -> jax.Array:
  """Max-pooling written out with its gradient.

  XLA differentiates `nn.max_pool` to a scatter, which on CPUs takes some
  twenty times as long as nested comparisons; the gradient of those takes five
  times as long as this one.
  """
  return _pool_and_keep(x)[0]


def _pool_and_keep(x: jax.Array) -> tuple[jax.Array, jax.Array]:
  *batch, height, width, channels = x.shape
  x = x.reshape(*batch, height // 2, 2, width // 2, 2, channels)
  quarters = [x[..., i, :, j, :] for i in (0, 1) for j in (0, 1)]
  y = functools.reduce(jnp.maximum, quarters)
  place = jnp.full(y.shape, 3, jnp.int32)
  for k in (2, 1, 0):
    place = jnp.where(quarters[k] == y, k, place)
  return y, place


def _pool_backward(place: jax.Array, g: jax.Array) -> tuple[jax.Array]:
  *batch, height, width, channels = g.shape
  places = jnp.arange(4, dtype=place.dtype).reshape(2, 1, 2, 1)
  place, g = (jnp.expand_dims(v, (-4, -2)) for v in (place, g))
  x = jnp.where(place == places, g, 0)
  return (x.reshape(*batch, 2 * height, 2 * width, channels),)


_pool_quarters.defvjp(_pool_and_keep, _pool_backward)


def _flatten(x: jax.Array) -> jax.Array:
  return x.reshape(*x.shape[:-3], -1)  # [..., H·W·C]
