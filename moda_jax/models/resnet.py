"""ResNet-50 for photographs, cut into the networks of office31.

Published weights come in variants that differ in a few places, see `Variant`;
`moda_jax.models.pretrained` reads them.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from moda_jax.errors import UserError
from moda_jax.models.batch_norm import BatchNorm
from moda_jax.models.layers import dense, scaled
from moda_jax.models.networks import Networks, pooled

BLOCKS = (3, 4, 6, 3)  # of the four stages


@dataclasses.dataclass(frozen=True)
class Variant:
  """What a set of published weights expects of the network.

  Attributes:
    bgr: whether colours come in the order blue, green, red.
    scale: the range of the input, from which `mean` is then subtracted.
    mean: one value per channel.
    std: what the difference is divided by.
    strided_conv: which convolution of a block takes its stride: 0 the first
      1 × 1, 1 the 3 × 3.
    conv_bias: whether convolutions have biases.
    epsilon: of BatchNorm.
  """

  bgr: bool
  scale: float
  mean: tuple[float, float, float]
  std: tuple[float, float, float]
  strided_conv: int
  conv_bias: bool
  epsilon: float


# He et al. 2016, as Keras has it.
_V1 = Variant(
  bgr=True,
  scale=255.0,
  mean=(103.939, 116.779, 123.68),
  std=(1.0, 1.0, 1.0),
  strided_conv=0,
  conv_bias=True,
  epsilon=1.001e-5,
)
VARIANTS = {
  'torchvision': Variant(
    bgr=False,
    scale=1.0,
    mean=(0.485, 0.456, 0.406),
    std=(0.229, 0.224, 0.225),
    strided_conv=1,
    conv_bias=False,
    epsilon=1e-5,
  ),
  'v1': _V1,
  # As long as Keras called its layers res2a_branch2a.
  'v1_old': dataclasses.replace(_V1, epsilon=1e-3),
}


@dataclasses.dataclass(frozen=True)
class Design:
  """What all parts of a network have in common, see `create_networks`."""

  variant: Variant
  width: float = 1.0
  axis_name: str | None = None
  dtype: Any = None
  remat: bool = False
  frozen_stages: int = 0


def create_networks(
  num_classes: int,
  width: float = 1.0,
  variant: str = 'torchvision',
  axis_name: str | None = None,
  dtype: Any = None,
  remat: bool = False,
  frozen_stages: int = 0,
) -> Networks:
  """Returns the paper's office31 networks.

  The extractor ends with stage 3 (conv4_x); classifier and discriminator have
  a stage 4 (conv5_x) each.

  Args:
    num_classes: how many logits the classifier gives.
    width: the multiple of every layer's channels.
    variant: a name in `VARIANTS`, that of the weights to be loaded.
    axis_name: the mapped axis of devices that a batch is split over.
    dtype: what convolutions compute in, such as 'bfloat16'; by default the
      parameters' type. Parameters, batch statistics and logits are float32.
    remat: whether the backward pass computes the insides of blocks again
      instead of keeping them: less memory, more time. No gain on CPUs.
    frozen_stages: how many of the extractor's three stages, with all before
      them, are neither trained nor take batch statistics.
  """
  if variant not in VARIANTS:
    raise UserError(
      f"The ResNet variant '{variant}' is unknown; allowed are "
      f'{", ".join(VARIANTS)}.'
    )
  design = Design(
    VARIANTS[variant], width, axis_name, dtype, remat, frozen_stages
  )
  return Networks(
    extractor=Extractor(design),
    classifier=Head(num_classes, design),
    discriminator=Head(2, design),
    width=width,
  )


class Extractor(nn.Module):
  """Images `[..., H, W, 3]` in 0..1 to `[..., H/16, W/16, 1024·width]`."""

  design: Design

  @nn.compact
  def __call__(self, x: jax.Array, *, train: bool = False) -> jax.Array:
    design = self.design
    x = _normalise(x, design.variant)
    features = scaled(64, design.width)
    frozen = design.frozen_stages
    x = _conv_norm(x, '_stem', features, 7, 2, design, train and not frozen)
    x = _pool(nn.relu(x))
    for number in (1, 2, 3):
      stage = Stage(number, design, name=f'stage{number}')
      x = stage(x, train and number > frozen)
      x = jax.lax.stop_gradient(x) if number == frozen else x
    return x


class Head(nn.Module):
  """Features to logits: stage 4, the average over space, one layer."""

  outputs: int
  design: Design

  @nn.compact
  def __call__(self, x: jax.Array, *, train: bool = False) -> jax.Array:
    x = Stage(4, self.design, name='stage4')(x, train)
    return dense(pooled(x, x.ndim - 3), self.outputs)


class Stage(nn.Module):
  """Blocks of the same width; from stage 2 on the first halves the size."""

  number: int  # 1 is conv2_x
  design: Design

  @nn.compact
  def __call__(self, x: jax.Array, train: bool) -> jax.Array:
    block = Bottleneck
    if self.design.remat:
      block = nn.remat(block, static_argnums=(2,))  # train
    features = scaled(32 * 2**self.number, self.design.width)
    for i in range(BLOCKS[self.number - 1]):
      stride = 2 if i == 0 and self.number > 1 else 1
      x = block(features, stride, self.design, name=f'block{i}')(x, train)
    return x


class Bottleneck(nn.Module):
  """1 × 1, 3 × 3 and 1 × 1 convolutions around a shortcut."""

  features: int  # a quarter of the output's
  stride: int
  design: Design

  @nn.compact
  def __call__(self, x: jax.Array, train: bool) -> jax.Array:
    y, outputs = x, 4 * self.features
    for i, (size, features) in enumerate(
      ((1, self.features), (3, self.features), (1, outputs))
    ):
      y = nn.relu(y) if i else y
      stride = self.stride if i == self.design.variant.strided_conv else 1
      y = _conv_norm(y, i, features, size, stride, self.design, train)
    if x.shape != y.shape:
      x = _conv_norm(
        x, '_shortcut', outputs, 1, self.stride, self.design, train
      )
    return nn.relu(x + y)


def _normalise(x: jax.Array, variant: Variant) -> jax.Array:
  x = x[..., ::-1] if variant.bgr else x
  mean, std = (jnp.asarray(v, x.dtype) for v in (variant.mean, variant.std))
  return (x * variant.scale - mean) / std


def _conv_norm(
  x: jax.Array,
  name: str | int,
  features: int,
  size: int,
  stride: int,
  design: Design,
  train: bool,
) -> jax.Array:
  """Applies a convolution padded by half its size, and BatchNorm."""
  variant = design.variant
  x = nn.Conv(
    features,
    (size, size),
    strides=stride,
    padding=size // 2,
    use_bias=variant.conv_bias,
    dtype=design.dtype,
    conv_general_dilated=_convolve_points if size == 1 else None,
    kernel_init=nn.initializers.variance_scaling(2.0, 'fan_out', 'normal'),
    name=f'conv{name}',
  )(x)
  norm = BatchNorm(variant.epsilon, design.axis_name, name=f'norm{name}')
  return norm(x, train)


def _convolve_points(
  x: jax.Array, kernel: jax.Array, strides: tuple[int, int], *_: Any, **__: Any
) -> jax.Array:
  """Convolves 1 × 1 by a product: a quarter less time per step on CPUs."""
  x = x[:, :: strides[0], :: strides[1]]
  return jnp.einsum('nhwc,cd->nhwd', x, kernel[0, 0])


def _pool(x: jax.Array) -> jax.Array:
  """Applies 3 × 3 max-pooling with stride 2, padded by 1.

  Written out, one axis after the other, because XLA differentiates
  `nn.max_pool` to a scatter, which is slow on CPUs. Columns come first, so
  that of equal values the first in reading order takes the gradient.
  """
  for axis in (-2, -3):
    size = (x.shape[axis] - 1) // 2 + 1
    padding = [(0, 0)] * x.ndim
    padding[axis] = (1, 1)
    padded = jnp.pad(x, padding, constant_values=-jnp.inf)
    a, b, c = (
      jax.lax.slice_in_dim(padded, i, i + 2 * size - 1, 2, axis % x.ndim)
      for i in range(3)
    )
    ab = jnp.where(a >= b, a, b)
    x = jnp.where(ab >= c, ab, c)
  return x
