"""Affine maps of images, pixel for pixel as Pillow makes them.

For every output pixel Pillow takes the input pixel under its centre: nearest
neighbour, 0 outside. A map is six numbers (a, b, c, d, e, f): output pixel
(x, y) shows the input at (ax + by + c, dx + ey + f).

What rounds is computed by plain TensorFlow ops. Compiled code (XLA) may round a
product and a sum once instead of twice, so it gets only what is exact anyway.
"""

import math

import tensorflow as tf


def shape_of(images: tf.Tensor) -> list[int | tf.Tensor]:
  """Returns the sides of images, as numbers where known before the run."""
  sides = zip(images.shape, tf.unstack(tf.shape(images)), strict=True)
  return [side if known is None else known for known, side in sides]


def rotation_matrix(
  angle: tf.Tensor,
  shift_x: tf.Tensor,
  shift_y: tf.Tensor,
  size: tuple[int | tf.Tensor, int | tf.Tensor],
) -> tuple[tf.Tensor, ...]:
  """Returns the map of Pillow's `rotate(angle, translate=(shift_x, shift_y))`.

  Args:
    angle: degrees counter-clockwise about the image's centre, [N] float64.
    shift_x: whole pixels to the right, [N] float64.
    shift_y: whole pixels down, [N] float64.
    size: height and width of the images.

  Returns:
    Six tensors [N] float64.
  """
  radians = tf.math.floormod(angle, 360.0) * (math.pi / -180.0)
  cos = tf.round(tf.cos(radians) * 1e15) / 1e15
  sin = tf.round(tf.sin(radians) * 1e15) / 1e15
  center_y, center_x = (tf.cast(side, tf.float64) * 0.5 for side in size)
  x, y = -center_x - shift_x, -center_y - shift_y
  c = cos * x + sin * y + center_x
  f = cos * y - sin * x + center_y
  return cos, sin, c, -sin, cos, f


def fixed_point(matrix: tf.Tensor) -> tf.Tensor:
  """Converts matrices [N, 6] from float64 to 16.16 fixed point, int32.

  They then start from pixel centres. This suffices for images of up to 16,384
  pixels per side.
  """
  a, b, c, d, e, f = tf.unstack(matrix, axis=-1)
  x, y = c + a * 0.5 + b * 0.5, f + d * 0.5 + e * 0.5
  matrix = tf.stack([a, b, x, d, e, y], axis=-1)
  return tf.cast(tf.floor(matrix * 65536.0 + 0.5), tf.int32)


def mirror(matrix: tf.Tensor, flip: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
  """Returns fixed-point matrices [N, 6] that mirror the input where `flip`."""
  a, b, c, d, e, f = tf.unstack(matrix, axis=-1)
  flipped = tf.stack([-a, -b, width * 65536 - 1 - c, d, e, f], axis=-1)
  return tf.where(flip[:, None], flipped, matrix)


def steps(start: tf.Tensor, length: int | tf.Tensor) -> tf.Tensor:
  """Returns the pixels under `start`, `start` + 1, …, [N, length] int32.

  Pillow computes a map that only shifts in floats, rounding at every step; a
  cumulative sum does the same.
  """
  ones = tf.ones([tf.size(start), length - 1], tf.float64)
  places = tf.cumsum(tf.concat([start[:, None], ones], axis=1), axis=1)
  return tf.cast(tf.floor(places), tf.int32)


def read(image: tf.Tensor, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
  """Returns the pixels of [H, W, 3] at whole coordinates, 0 outside.

  Args:
    image: the pixels.
    x: columns, [H, W] or what broadcasts to it with `y`.
    y: rows.
  """
  height, width = tf.unstack(tf.shape(image)[:2])
  inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
  place = tf.where(inside, y * width + x, 0)
  pixels = tf.gather(tf.reshape(image, [-1, 3]), place)
  return tf.where(inside[..., None], pixels, tf.zeros([], image.dtype))


def warp(image: tf.Tensor, matrix: tf.Tensor) -> tf.Tensor:
  """Returns [H, W, 3] mapped by a fixed-point matrix [6]."""
  height, width = tf.unstack(tf.shape(image)[:2])
  row, column = tf.range(height)[:, None], tf.range(width)
  a, b, c, d, e, f = tf.unstack(matrix)
  x = tf.bitwise.right_shift(a * column + (b * row + c), 16)
  y = tf.bitwise.right_shift(d * column + (e * row + f), 16)
  return read(image, x, y)
