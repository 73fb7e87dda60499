"""The operations of RandAugment, compiled into one loop over a batch.

XLA turns the loop and its branches into machine code, so that an image pays for
the operations it drew and for nothing else. The first batch of a shape waits a
few seconds for the compiler.
"""

from typing import NamedTuple

import tensorflow as tf

from moda_jax.data import geometry
from moda_jax.data import pixel_operations as pixel

OPERATIONS = (
  'AutoContrast',
  'Equalize',
  'Invert',
  'Rotate',
  'Posterize',
  'Solarize',
  'Color',
  'Contrast',
  'Brightness',
  'Sharpness',
  'ShearX',
  'ShearY',
  'FlipX',
  'TranslateX',
  'TranslateY',
)


class Settings(NamedTuple):
  """R pairs of operation and value, as the compiled loop needs them."""

  operation: tf.Tensor  # [R] int32, index into OPERATIONS
  factor: tf.Tensor  # [R, 2] float32, of a blend
  threshold: tf.Tensor  # [R] int16, invert from here on
  mask: tf.Tensor  # [R] int16, bits to keep
  matrix: tf.Tensor  # [R, 6] int32, in fixed point
  column: tf.Tensor  # [R, W] int32, where a shift reads
  row: tf.Tensor  # [R, H] int32


def make_settings(
  operation: tf.Tensor,
  value: tf.Tensor,
  size: tuple[int | tf.Tensor, int | tf.Tensor],
) -> Settings:
  """Returns the settings for indices [R] int32 and values [R] float64.

  These are plain ops: compiled code may round products and sums differently.
  """

  def is_(name: str) -> tf.Tensor:
    return operation == OPERATIONS.index(name)

  def of(name: str, default: float = 0.0) -> tf.Tensor:
    return tf.where(is_(name), value, tf.constant(default, tf.float64))

  height, width = (tf.cast(side, tf.float64) for side in size)
  zero = tf.zeros([], tf.float64)
  a, b, c, d, e, f = geometry.rotation_matrix(of('Rotate'), zero, zero, size)
  a, c = tf.where(is_('FlipX'), -a, a), tf.where(is_('FlipX'), width, c)
  matrix = [a, b + of('ShearX'), c, d + of('ShearY'), e, f]
  threshold = tf.where(is_('Invert'), zero, of('Solarize', 256.0))
  dropped_bits = 8 - tf.cast(of('Posterize', 8.0), tf.int16)
  one = tf.ones([], tf.int16)
  return Settings(
    operation=operation,
    factor=pixel.halves(tf.cast(value, tf.float32)),
    threshold=tf.cast(tf.math.ceil(threshold), tf.int16),
    mask=256 - tf.bitwise.left_shift(one, dropped_bits),
    matrix=geometry.fixed_point(tf.stack(matrix, axis=-1)),
    column=geometry.steps(of('TranslateX') * width + 0.5, size[1]),
    row=geometry.steps(of('TranslateY') * height + 0.5, size[0]),
  )


def operate(image: tf.Tensor, setting: Settings) -> tf.Tensor:
  """Applies one operation to one image."""

  def look_up() -> tf.Tensor:
    # A separate branch, or the table is computed again for every pixel.
    table = tf.cond(
      setting.operation == OPERATIONS.index('Equalize'),
      lambda: pixel.equalize_table(image),
      lambda: pixel.autocontrast_table(image),
    )
    return pixel.look_up(image, table)

  branches = {
    'AutoContrast Equalize': look_up,
    'Invert Posterize Solarize': lambda: pixel.invert_and_mask(
      image, setting.threshold, setting.mask
    ),
    'Color': lambda: pixel.color(image, setting.factor),
    'Contrast': lambda: pixel.contrast(image, setting.factor),
    'Brightness': lambda: pixel.brightness(image, setting.factor),
    'Sharpness': lambda: pixel.sharpness(image, setting.factor),
    'Rotate ShearX ShearY FlipX': lambda: geometry.warp(image, setting.matrix),
    'TranslateX TranslateY': lambda: geometry.read(
      image, setting.column, setting.row[:, None]
    ),
  }
  groups = [group.split() for group in branches]
  branch_of = [
    next(i for i, group in enumerate(groups) if name in group)
    for name in OPERATIONS
  ]
  branch = tf.gather(branch_of, setting.operation)
  return tf.switch_case(branch, list(branches.values()))


def run(images: tf.Tensor, picked: tf.Tensor, settings: Settings) -> tf.Tensor:
  """Applies to image i the settings `picked[i]`, one after the other.

  To be called in a function compiled by XLA.

  Args:
    images: [N, H, W, 3] uint8.
    picked: rows of the settings, [N, n] int32.
    settings: R rows.
  """
  count, n = tf.unstack(tf.shape(picked))
  picked = tf.reshape(picked, [-1])

  def turn(step: tf.Tensor, images: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    # Gathered, not sliced: XLA compiles again for every start of a slice.
    place, chosen = step // n, tf.gather(picked, step)
    setting = Settings(*(tf.gather(values, chosen) for values in settings))
    image = operate(tf.gather(images, place), setting)
    update = tf.tensor_scatter_nd_update(images, [[place]], image[None])
    return step + 1, tf.ensure_shape(update, images.shape)

  _, images = tf.while_loop(lambda step, _: step < count * n, turn, [0, images])
  return images
