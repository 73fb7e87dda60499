import numpy as np
import pytest
import tensorflow as tf

from moda_jax.data import permutations, seeds


def read(count, batch_size, steps, seed=0, name='a'):
  stream = seeds.stream(seed, name)
  return np.concatenate(
    [
      permutations.batch_indices(
        stream, tf.constant(step, tf.int64), batch_size, count
      )
      for step in range(steps)
    ]
  )


@pytest.mark.parametrize(
  ('count', 'batch_size'), [(10, 5), (10, 4), (7, 16), (1, 3), (257, 32)]
)
def test_every_epoch_is_a_permutation(count, batch_size):
  steps = -(-4 * count // batch_size)
  order = read(count, batch_size, steps)
  for epoch in range(4):
    part = order[epoch * count : (epoch + 1) * count]
    np.testing.assert_array_equal(np.sort(part), np.arange(count))


def test_epochs_seeds_and_names_give_unrelated_orders():
  count = 1000
  first, second = read(count, count, 2).reshape(2, count)
  orders = [
    first,
    second,
    read(count, count, 1, seed=1),
    read(count, count, 1, name='b'),
  ]
  correlations = np.corrcoef(orders)[np.triu_indices(4, 1)]
  # Three standard deviations of the correlation of random permutations.
  assert np.abs(correlations).max() < 3 / np.sqrt(count)


def test_the_order_does_not_depend_on_where_reading_starts():
  whole = read(50, 8, 12)
  stream = seeds.stream(0, 'a')
  step = tf.constant(7, tf.int64)
  alone = permutations.batch_indices(stream, step, 8, 50)
  np.testing.assert_array_equal(alone, whole[56:64])
