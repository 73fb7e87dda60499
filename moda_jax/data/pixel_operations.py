"""Operations on the values of one image [H, W, 3], equal to Pillow's.

They are compiled (XLA), where a product and a sum may round once instead of
twice. Whole numbers do not round, and where Pillow uses floats every product
here is exact or looked up: the bits do not depend on the compiler, unless
XLA_FLAGS asks it for fast math.
"""

from collections.abc import Callable

import numpy as np
import tensorflow as tf

# Row d holds i * (255 / d) as Pillow's autocontrast rounds it, row 0 i itself.
_STRETCHED = np.arange(256) * np.append(1.0, 255.0 / np.arange(1, 256))[:, None]


def _rows(image: tf.Tensor) -> tf.Tensor:
  """Returns [H, W, 3] as [H, W * 3], which compiles to faster loops."""
  height, width = tf.unstack(tf.shape(image)[:2])
  return tf.reshape(image, [height, width * 3])


def look_up(image: tf.Tensor, table: tf.Tensor) -> tf.Tensor:
  """Applies a table [3, 256] uint8, one row per channel."""
  place = tf.cast(image, tf.int32) + tf.range(3) * 256
  return tf.gather(tf.reshape(table, [-1]), place)


def autocontrast_table(image: tf.Tensor) -> tf.Tensor:
  """Returns the table that stretches the levels of each channel to 0..255."""

  def extreme(reduce: Callable[..., tf.Tensor]) -> tf.Tensor:
    levels = tf.reshape(reduce(_rows(image), axis=0), [-1, 3])
    return tf.cast(reduce(levels, axis=0), tf.int32)

  low, high = extreme(tf.reduce_min), extreme(tf.reduce_max)
  span = high - low
  offset = tf.gather_nd(_STRETCHED, tf.stack([span, low], axis=-1))
  offset = tf.where(span > 0, offset, tf.zeros_like(offset))
  table = tf.gather(_STRETCHED, span) - offset[:, None]
  return tf.cast(tf.clip_by_value(tf.cast(table, tf.int32), 0, 255), tf.uint8)


def equalize_table(image: tf.Tensor) -> tf.Tensor:
  """Returns the table that flattens the histogram of each channel."""
  bins = tf.reshape(tf.cast(image, tf.int32) + tf.range(3) * 256, [-1])
  counts = tf.math.unsorted_segment_sum(tf.ones_like(bins), bins, 768)
  counts = tf.reshape(counts, [3, 256])
  below = tf.cumsum(counts, axis=1, exclusive=True)
  # All pixels but those of the brightest level.
  darker = tf.reduce_max(tf.where(counts > 0, below, 0), axis=1)
  step = darker[:, None] // 255
  divisor = tf.maximum(step, 1)
  table = tf.minimum((divisor // 2 + below) // divisor, 255)
  return tf.cast(tf.where(step > 0, table, tf.range(256)), tf.uint8)


def invert_and_mask(
  image: tf.Tensor, threshold: tf.Tensor, mask: tf.Tensor
) -> tf.Tensor:
  """Inverts the values from `threshold` on, then keeps the bits of `mask`."""
  value = tf.cast(image, tf.int16)
  value = tf.where(value < threshold, value, 255 - value)
  return tf.cast(tf.bitwise.bitwise_and(value, mask), tf.uint8)


def halves(factor: tf.Tensor) -> tf.Tensor:
  """Splits float32 into two of 12 bits with the same sum, [..., 2]."""
  bits = tf.bitwise.bitwise_and(tf.bitcast(factor, tf.int32), ~0xFFF)
  high = tf.bitcast(bits, tf.float32)
  return tf.stack([high, factor - high], axis=-1)


def blend(
  degenerate: tf.Tensor, value: tf.Tensor, factor: tf.Tensor
) -> tf.Tensor:
  """Blends whole numbers (float32) as Pillow does, with its float32 roundings.

  The factor comes as `halves`, whose products are exact; their sum is the
  product as Pillow rounds it, whether or not it is fused.
  """
  change = value - degenerate
  change = change * factor[0] + change * factor[1]
  return tf.cast(tf.clip_by_value(degenerate + change, 0.0, 255.0), tf.uint8)


def _grey(image: tf.Tensor) -> tf.Tensor:
  red, green, blue = tf.unstack(tf.cast(image, tf.int32), axis=-1)
  total = 19595 * red + 38470 * green + 7471 * blue + 32768
  return tf.bitwise.right_shift(total, 16)


def color(image: tf.Tensor, factor: tf.Tensor) -> tf.Tensor:
  """Blends with the grey image."""
  grey = tf.cast(_grey(image), tf.float32)[..., None]
  return blend(grey, tf.cast(image, tf.float32), factor)


def contrast(image: tf.Tensor, factor: tf.Tensor) -> tf.Tensor:
  """Blends with the mean of the grey image, rounded."""
  grey = _grey(image)
  # One row fits int32, a large image may not.
  total = tf.reduce_sum(tf.cast(tf.reduce_sum(grey, axis=1), tf.int64))
  count = tf.size(grey, tf.int64)
  mean = tf.cast((2 * total + count) // (2 * count), tf.float32)
  return blend(mean, tf.cast(image, tf.float32), factor)


def brightness(image: tf.Tensor, factor: tf.Tensor) -> tf.Tensor:
  """Blends with black."""
  return blend(tf.zeros([]), tf.cast(image, tf.float32), factor)


def sharpness(image: tf.Tensor, factor: tf.Tensor) -> tf.Tensor:
  """Blends with the smoothed image; the outermost pixels stay as they are."""
  value = tf.cast(_rows(image), tf.int16)
  height, length = tf.unstack(tf.shape(value))
  around = tf.pad(value, [[1, 1], [3, 3]])
  around = around[:-2] + around[1:-1] + around[2:]
  around = around[:, :-6] + around[:, 3:-3] + around[:, 6:] + 4 * value
  row, column = tf.range(height)[:, None], tf.range(length)
  is_inner = (row > 0) & (row < height - 1)
  is_inner &= (column >= 3) & (column < length - 3)
  value = tf.cast(value, tf.float32)
  # Never nearer to a whole number than 1/26: no rounding can change the floor.
  smooth = tf.floor(tf.cast(around, tf.float32) / 13.0 + 0.5)
  smooth = tf.where(is_inner, smooth, value)
  return tf.reshape(blend(smooth, value, factor), tf.shape(image))
