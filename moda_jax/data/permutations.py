"""Each domain is an endless chain of permutations, read at any position."""

import tensorflow as tf

from moda_jax.data import seeds


def batch_indices(
  seed: tf.Tensor, step: tf.Tensor, batch_size: int, count: int
) -> tf.Tensor:
  """Returns the examples of mini-batch `step` of a domain.

  Epoch after epoch, each a fresh permutation of all examples, cut into
  mini-batches without regard to where an epoch ends: batches are always full.

  Args:
    seed: the domain's stream, see `seeds.stream`.
    step: int64 scalar.
    batch_size: examples per mini-batch.
    count: examples in the domain.

  Returns:
    `[batch_size]` int64, in `[0, count)`.
  """
  position = step * batch_size + tf.range(batch_size, dtype=tf.int64)
  epoch = position // count
  # A batch may span several epochs when the domain is small.
  spanned = -(-batch_size // count) + 1
  epoch_seeds = tf.stack(
    [seeds.fold_in(seed, epoch[0] + k) for k in range(spanned)]
  )
  example_seeds = tf.gather(epoch_seeds, epoch - epoch[0])  # [B, 2]
  # The op needs three words; unlike its wrapper it takes one seed per row.
  padding = tf.zeros_like(example_seeds[:, :1])
  words = tf.concat([example_seeds, padding], axis=1)
  return tf.raw_ops.RandomIndexShuffle(
    index=position % count,
    seed=tf.cast(words & 0xFFFFFFFF, tf.uint32),
    max_index=tf.constant(count - 1, tf.int64),
    rounds=4,
  )
