"""The weak view: a small rotation and shift of every image of a batch."""

from typing import NamedTuple

import tensorflow as tf

from moda_jax.data import geometry
from moda_jax.data.parts import draw_rows
from moda_jax.data.randaugment import check_images
from moda_jax.data.spec import Part

_SALT = 0x5EED_0003


class WeakDraws(NamedTuple):
  """What was drawn for a batch of N images."""

  angle: tf.Tensor  # [N] float64, degrees counter-clockwise
  shift_x: tf.Tensor  # [N] float64, whole pixels to the right
  shift_y: tf.Tensor  # [N] float64, whole pixels down
  flip: tf.Tensor  # [N] bool


def draw_weak(
  seed: tf.Tensor,
  count: int | tf.Tensor,
  size: tuple[int | tf.Tensor, int | tf.Tensor],
  rotation: float = 5.0,
  translation: float = 0.125,
) -> WeakDraws:
  """Draws for `weak_view` on `count` images of `size` (height, width)."""
  drawn = tf.random.stateless_uniform(
    [4, count], seed + _SALT, dtype=tf.float64, alg='philox'
  )
  angle, x, y = tf.unstack(2.0 * drawn[:3] - 1.0)
  height, width = (tf.cast(side, tf.float64) * translation for side in size)
  return WeakDraws(
    angle=angle * rotation,
    shift_x=tf.round(x * width),
    shift_y=tf.round(y * height),
    flip=drawn[3] < 0.5,
  )


@tf.function(jit_compile=True, autograph=False, reduce_retracing=True)
def _warp(
  images: tf.Tensor, matrix: tf.Tensor, flip: tf.Tensor | None
) -> tf.Tensor:
  matrix = geometry.fixed_point(matrix)
  if flip is not None:
    matrix = geometry.mirror(matrix, flip, tf.shape(images)[2])
  return tf.map_fn(
    lambda pair: geometry.warp(*pair),
    (images, matrix),
    fn_output_signature=tf.TensorSpec(images.shape[1:], tf.uint8),
  )


@tf.autograph.experimental.do_not_convert
def weak_view(
  images: tf.Tensor,
  seed: tf.Tensor,
  rotation: float = 5.0,
  translation: float = 0.125,
  flip: bool = False,
  part: Part | None = None,
) -> tf.Tensor:
  """Rotates and shifts each image at random, about its centre.

  Args:
    images: [N, H, W, 3] uint8.
    seed: [2] integers; the same seed gives the same view.
    rotation: largest angle in degrees, either way.
    translation: largest shift as a part of the side, either way, rounded to
      whole pixels.
    flip: whether every other image, at random, is first flipped sideways.
    part: what the images are of their mini-batches; all of them by default.

  Returns:
    [N, H, W, 3] uint8, equal to Pillow's `rotate(angle, translate=…)` for the
    same draws (see `draw_weak`).
  """
  images = check_images(images)
  count, height, width, _ = geometry.shape_of(images)
  draws = draw_rows(
    lambda n: draw_weak(seed, n, (height, width), rotation, translation),
    count,
    part,
  )
  matrix = geometry.rotation_matrix(
    draws.angle, draws.shift_x, draws.shift_y, (height, width)
  )
  flips = draws.flip if flip else None
  return _warp(images, tf.stack(matrix, axis=-1), flips)
