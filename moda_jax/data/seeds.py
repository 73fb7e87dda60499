"""Seeds: every random draw of the data is a function of (seed, name, index)."""

import zlib

import numpy as np
import tensorflow as tf


def domain_entropy(seed: int, name: str) -> list[int]:
  """Returns entropy for NumPy's generators: by name, not by position."""
  return [seed, zlib.crc32(name.encode())]


def stream(seed: int, name: str) -> tf.Tensor:
  """Returns the root of a named stream of stateless seeds, `[2]` int64."""
  sequence = np.random.SeedSequence(domain_entropy(seed, name))
  return tf.constant(sequence.generate_state(2), tf.int64)


def fold_in(seed: tf.Tensor, index: tf.Tensor) -> tf.Tensor:
  """Returns the seed of entry `index` of the stream `seed`, hashed, `[2]`."""
  return tf.random.experimental.stateless_fold_in(seed, index)
