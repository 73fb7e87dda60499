"""RandAugment of a batch of images inside tf.data, equal to Pillow's.

It runs as TensorFlow ops on the whole batch, a pure function of its seed.
"""

import functools
from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from moda_jax.data import geometry, operations
from moda_jax.data.operations import OPERATIONS
from moda_jax.data.parts import draw_rows
from moda_jax.data.spec import Part
from moda_jax.errors import UserError

MAX_MAGNITUDE = 30

# Value at magnitude 0, its change up to magnitude 30, whether it has a sign.
_RANGES = {
  'Rotate': (0.0, 30.0, True),
  'Posterize': (8.0, -4.0, False),
  'Solarize': (256.0, -256.0, False),
  'Color': (1.0, 0.9, True),
  'Contrast': (1.0, 0.9, True),
  'Brightness': (1.0, 0.9, True),
  'Sharpness': (1.0, 0.9, True),
  'ShearX': (0.0, 0.3, True),
  'ShearY': (0.0, 0.3, True),
  'TranslateX': (0.0, 0.45, True),
  'TranslateY': (0.0, 0.45, True),
}
_ON_OR_OFF = (0.0, 0.0, False)

_CUTOUT_PART = 0.3
_CUTOUT_COLOR = (125, 123, 114)

# Set the draws apart for a caller who uses one seed for everything.
_SALT = 0x5EED_0001
_MAGNITUDE_SALT = 0x5EED_0002

_compiled = tf.function(
  jit_compile=True, autograph=False, reduce_retracing=True
)
_as_written = tf.autograph.experimental.do_not_convert


class Draws(NamedTuple):
  """What was drawn for a batch of N images."""

  operations: tf.Tensor  # [N, n] int32, index into OPERATIONS
  signs: tf.Tensor  # [N, n] int32, 1 or -1
  center_x: tf.Tensor  # [N] float64 in [0, W)
  center_y: tf.Tensor  # [N] float64 in [0, H)


def check_images(images: tf.Tensor) -> tf.Tensor:
  """Refuses what is not a batch of RGB images of bytes."""
  images = tf.convert_to_tensor(images)
  if images.dtype != tf.uint8:
    raise UserError(f'images are {images.dtype.name}; they must be uint8')
  if images.shape.rank != 4 or images.shape[-1] not in (3, None):
    raise UserError(f'images are {images.shape}; they must be [N, H, W, 3]')
  return images


def _check_names(names: Collection[str]) -> None:
  for name in names:
    if name not in OPERATIONS:
      raise UserError(
        f'unknown operation {name!r}; known: {", ".join(OPERATIONS)}'
      )


def check_exclude(exclude: Collection[str]) -> None:
  """Refuses unknown names of operations, and the exclusion of all of them."""
  _check_names(exclude)
  if set(exclude) >= set(OPERATIONS):
    raise UserError('exclude names every operation; leave at least one')


def _check_magnitude(magnitude: int | tf.Tensor) -> None:
  if tf.is_tensor(magnitude):
    magnitude = tf.get_static_value(magnitude)
    if magnitude is None:  # not known before the graph runs: trusted
      return
  if not np.isin(magnitude, range(MAX_MAGNITUDE + 1)).all():
    raise UserError(
      f'magnitude is {magnitude}; it must be one of 0, 1, …, {MAX_MAGNITUDE}'
    )


def operation_value(
  name: str, magnitude: int | tf.Tensor, sign: int | tf.Tensor
) -> float | tf.Tensor:
  """Returns an operation's value at a magnitude: 0 identity, 30 the extreme.

  Args:
    name: one of `OPERATIONS`.
    magnitude: 0 to 30.
    sign: 1 or -1; ignored by operations that go one way only.

  Returns:
    A number for numbers, a float64 tensor of the same bits for tensors. 0 for
    the operations without a value: AutoContrast, Equalize, Invert, FlipX.
  """
  _check_names([name])
  _check_magnitude(magnitude)
  start, change, signed = _RANGES.get(name, _ON_OR_OFF)
  if tf.is_tensor(magnitude) or tf.is_tensor(sign):
    magnitude = tf.cast(magnitude, tf.float64)
    sign = tf.cast(sign, tf.float64)
  change = magnitude / MAX_MAGNITUDE * change
  return start + (sign * change if signed else change)


def _make_settings(
  magnitudes: tf.Tensor, size: tuple[int | tf.Tensor, int | tf.Tensor]
) -> operations.Settings:
  """Returns rows for each magnitude [M], each operation and either sign."""
  ranges = [_RANGES.get(name, _ON_OR_OFF) for name in OPERATIONS]
  start, change, signed = np.array(ranges).T
  sign = np.where(signed[:, None] > 0, [1.0, -1.0], 1.0)
  change = tf.cast(magnitudes, tf.float64)[:, None] / MAX_MAGNITUDE * change
  values = start[:, None] + sign * change[..., None]  # [M, 15, 2]
  rows = tf.range(tf.size(values)) // 2 % len(OPERATIONS)
  return operations.make_settings(rows, tf.reshape(values, [-1]), size)


@functools.cache
def _settings_of_all_magnitudes(height: int, width: int) -> operations.Settings:
  with tf.init_scope():  # Computed here and now, not in every step.
    return _make_settings(tf.range(MAX_MAGNITUDE + 1), (height, width))


def draw_magnitude(seed: tf.Tensor, low: int, high: int) -> tf.Tensor:
  """Draws the magnitude of a mini-batch, uniform over low, low + 1, …, high."""
  _check_magnitude(low)
  _check_magnitude(high)
  if low > high:
    raise UserError(f'there is no magnitude from {low} to {high}; swap them')
  return tf.random.stateless_uniform(
    [], seed + _MAGNITUDE_SALT, low, high + 1, tf.int32, alg='philox'
  )


def draw(
  seed: tf.Tensor,
  count: int | tf.Tensor,
  size: tuple[int | tf.Tensor, int | tf.Tensor],
  n: int = 2,
  exclude: Collection[str] = (),
) -> Draws:
  """Draws for `randaugment` on `count` images of `size` (height, width)."""
  check_exclude(exclude)
  allowed = [i for i, name in enumerate(OPERATIONS) if name not in exclude]
  if n < 1:
    raise UserError(f'n is {n}; an image takes at least 1 operation')
  drawn = tf.random.stateless_uniform(
    [n + 2, count], seed + _SALT, dtype=tf.float64, alg='philox'
  )
  code = tf.cast(tf.transpose(drawn[:n]) * (2 * len(allowed)), tf.int32)
  height, width = (tf.cast(side, tf.float64) for side in size)
  return Draws(
    operations=tf.gather(allowed, code // 2),
    signs=1 - 2 * (code % 2),
    center_x=drawn[n] * width,
    center_y=drawn[n + 1] * height,
  )


@_compiled
def _apply(images: tf.Tensor, settings: operations.Settings) -> tf.Tensor:
  picked = tf.range(tf.shape(images)[0])[:, None]
  return operations.run(images, picked, settings)


@_as_written
def apply_operation(
  images: tf.Tensor, name: str, value: float | tf.Tensor
) -> tf.Tensor:
  """Applies one operation to all images.

  Args:
    images: [N, H, W, 3] uint8.
    name: one of `OPERATIONS`.
    value: as `operation_value` gives it, for all images or [N]; ignored by the
      operations without one.

  Returns:
    [N, H, W, 3] uint8, every pixel equal to Pillow's.
  """
  images = check_images(images)
  _check_names([name])
  count, height, width, _ = geometry.shape_of(images)
  value = tf.broadcast_to(tf.cast(value, tf.float64), [count])
  index = tf.fill([count], OPERATIONS.index(name))
  settings = operations.make_settings(index, value, (height, width))
  return _apply(images, settings)


def _cut(
  images: tf.Tensor, center_x: tf.Tensor, center_y: tf.Tensor
) -> tf.Tensor:
  height, width = tf.unstack(tf.shape(images)[1:3])
  side = tf.cast(_CUTOUT_PART * tf.cast(height, tf.float64), tf.int32)
  half = tf.cast(side, tf.float64) * 0.5

  def covered(center: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
    first = tf.cast(tf.maximum(center - half, 0.0), tf.int32)[:, None]
    return (tf.range(length) >= first) & (tf.range(length) <= first + side)

  hidden = covered(center_y, height)[:, :, None, None]
  hidden &= covered(center_x, width)[:, None, :, None]
  return tf.where(hidden, tf.constant(_CUTOUT_COLOR, tf.uint8), images)


_compiled_cut = _compiled(_cut)


@_as_written
def cutout(
  images: tf.Tensor, center_x: tf.Tensor, center_y: tf.Tensor
) -> tf.Tensor:
  """Paints a square over each image, its side 0.3 of the height.

  Args:
    images: [N, H, W, 3] uint8.
    center_x: [N] float64, the middle of the square in pixels from the left.
    center_y: [N] float64, from the top.

  Returns:
    [N, H, W, 3] uint8, equal to Pillow's `rectangle`, which paints both of its
    corners: one pixel more than the side.
  """
  return _compiled_cut(check_images(images), center_x, center_y)


@_compiled
def _augment(
  images: tf.Tensor,
  picked: tf.Tensor,
  settings: operations.Settings,
  centers: tuple[tf.Tensor, tf.Tensor],
  cutout: str,
) -> tf.Tensor:
  if cutout == 'first':
    images = _cut(images, *centers)
  images = operations.run(images, picked, settings)
  if cutout == 'last':
    images = _cut(images, *centers)
  return images


@_as_written
def randaugment(
  images: tf.Tensor,
  seed: tf.Tensor,
  n: int = 2,
  magnitude: int | tf.Tensor = 10,
  exclude: Collection[str] = (),
  cutout: str = 'first',
  part: Part | None = None,
) -> tf.Tensor:
  """Returns the strong view: `n` random operations per image, and a cutout.

  Args:
    images: [N, H, W, 3] uint8.
    seed: [2] integers; the same seed gives the same view.
    n: operations per image, drawn with replacement.
    magnitude: 0 to 30, a whole number, of the whole batch; a tensor is trusted.
      See `draw_magnitude`.
    exclude: operations not to draw.
    cutout: 'first', before the operations as in the paper, or 'last'.
    part: what the images are of their mini-batch; all of it by default.

  Returns:
    [N, H, W, 3] uint8, equal to Pillow's for the same draws (see `draw`).
  """
  images = check_images(images)
  _check_magnitude(magnitude)
  if cutout not in ('first', 'last'):
    raise UserError(f"cutout is {cutout!r}; it must be 'first' or 'last'")
  count, height, width, _ = geometry.shape_of(images)
  draws = draw_rows(
    lambda rows: draw(seed, rows, (height, width), n, exclude), count, part
  )
  picked = draws.operations * 2 + (1 - draws.signs) // 2
  if isinstance(height, int) and isinstance(width, int):
    settings = _settings_of_all_magnitudes(height, width)
    picked += tf.cast(magnitude, tf.int32) * 2 * len(OPERATIONS)
  else:
    settings = _make_settings(tf.reshape(magnitude, [1]), (height, width))
  centers = (draws.center_x, draws.center_y)
  return _augment(images, picked, settings, centers, cutout)
