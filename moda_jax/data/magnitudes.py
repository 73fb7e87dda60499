"""Magnitudes of RandAugment's operations, and the values that they mean."""

import functools
from collections.abc import Collection

import numpy as np
import tensorflow as tf

from moda_jax.data import operations
from moda_jax.data.operations import OPERATIONS
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

# Sets the draw apart for a caller who uses one seed for everything.
_MAGNITUDE_SALT = 0x5EED_0002


def check_names(names: Collection[str]) -> None:
  """Refuses unknown names of operations."""
  for name in names:
    if name not in OPERATIONS:
      raise UserError(
        f'unknown operation {name!r}; known: {", ".join(OPERATIONS)}'
      )


def check_magnitude(magnitude: int | tf.Tensor) -> None:
  """Refuses what is not a magnitude, where it is known already."""
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
  check_names([name])
  check_magnitude(magnitude)
  start, change, signed = _RANGES.get(name, _ON_OR_OFF)
  if tf.is_tensor(magnitude) or tf.is_tensor(sign):
    magnitude = tf.cast(magnitude, tf.float64)
    sign = tf.cast(sign, tf.float64)
  change = magnitude / MAX_MAGNITUDE * change
  return start + (sign * change if signed else change)


def make_settings(
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
def settings_of_all_magnitudes(height: int, width: int) -> operations.Settings:
  """Returns `make_settings` for 0 to 30, computed once for each size."""
  with tf.init_scope():  # Computed here and now, not in every step.
    return make_settings(tf.range(MAX_MAGNITUDE + 1), (height, width))


def draw_magnitude(seed: tf.Tensor, low: int, high: int) -> tf.Tensor:
  """Draws the magnitude of a mini-batch, uniform over low, low + 1, …, high."""
  check_magnitude(low)
  check_magnitude(high)
  if low > high:
    raise UserError(f'there is no magnitude from {low} to {high}; swap them')
  return tf.random.stateless_uniform(
    [], seed + _MAGNITUDE_SALT, low, high + 1, tf.int32, alg='philox'
  )
