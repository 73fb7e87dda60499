"""RandAugment of a batch of images inside tf.data, equal to Pillow's.

It runs as TensorFlow ops on the whole batch, a pure function of its seed.
"""

from collections.abc import Collection
from typing import NamedTuple

import tensorflow as tf

from moda_jax.data import geometry, operations
from moda_jax.data.magnitudes import (
  MAX_MAGNITUDE,
  check_magnitude,
  check_names,
  make_settings,
  settings_of_all_magnitudes,
)
from moda_jax.data.operations import OPERATIONS
from moda_jax.data.parts import draw_rows
from moda_jax.data.spec import Part
from moda_jax.errors import UserError

_CUTOUT_PART = 0.3
_CUTOUT_COLOR = (125, 123, 114)

# Set the draws apart for a caller who uses one seed for everything.
_SALT = 0x5EED_0001

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


def check_exclude(exclude: Collection[str]) -> None:
  """Refuses unknown names of operations, and the exclusion of all of them."""
  check_names(exclude)
  if set(exclude) >= set(OPERATIONS):
    raise UserError('exclude names every operation; leave at least one')


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
  check_names([name])
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
  check_magnitude(magnitude)
  if cutout not in ('first', 'last'):
    raise UserError(f"cutout is {cutout!r}; it must be 'first' or 'last'")
  count, height, width, _ = geometry.shape_of(images)
  draws = draw_rows(
    lambda rows: draw(seed, rows, (height, width), n, exclude), count, part
  )
  return apply_draws(images, draws, magnitude, cutout)


@_as_written
def apply_draws(
  images: tf.Tensor,
  draws: Draws,
  magnitude: int | tf.Tensor,
  cutout: str = '',
) -> tf.Tensor:
  """Returns images as they were drawn for.

  Args:
    images: [N, H, W, 3] uint8.
    draws: for these images.
    magnitude: of all of them, or [N, n].
    cutout: 'first', 'last' or none.
  """
  _, height, width, _ = geometry.shape_of(images)
  picked = draws.operations * 2 + (1 - draws.signs) // 2
  if isinstance(height, int) and isinstance(width, int):
    settings = settings_of_all_magnitudes(height, width)
  else:
    settings = make_settings(tf.range(MAX_MAGNITUDE + 1), (height, width))
  picked += tf.cast(magnitude, tf.int32) * 2 * len(OPERATIONS)
  centers = (draws.center_x, draws.center_y)
  return _augment(images, picked, settings, centers, cutout)
