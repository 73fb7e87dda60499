"""The weak view equals Pillow's `rotate` with the same draws."""

import numpy as np
import pillow_views
import pytest
import scipy.stats
import tensorflow as tf

from moda_jax.data import randaugment, weak
from moda_jax.errors import UserError

SEED = tf.constant([1, 2])


def replay(images, draws, flip):
  draws = weak.WeakDraws(*(drawn.numpy() for drawn in draws))
  shifts = np.stack([draws.shift_x, draws.shift_y], axis=-1).astype(int)
  rows = zip(images, draws.angle, shifts.tolist(), draws.flip, strict=True)
  return np.stack(
    [
      pillow_views.weak(image, angle, tuple(shift), flip and flipped)
      for image, angle, shift, flipped in rows
    ]
  )


def random_images(count, size):
  return np.random.default_rng(0).integers(0, 256, (count, *size, 3), np.uint8)


@pytest.mark.parametrize(
  'size', [(32, 32), (28, 28), (37, 53), (256, 256), (1, 1), (2, 3)], ids=str
)
def test_equals_pillow_for_the_same_draws(size):
  count = 60 if size == (256, 256) else 400
  images = random_images(count, size)
  view = weak.weak_view(images, SEED, flip=True)
  want = replay(images, weak.draw_weak(SEED, count, size), flip=True)
  np.testing.assert_array_equal(view, want)


@pytest.mark.parametrize('flip', [False, True])
def test_equals_pillow_in_a_pipeline(flip):
  images = random_images(400, (32, 32))

  def view(step):
    return weak.weak_view(images, tf.stack([1, step]), flip=flip)

  steps = tf.data.Dataset.range(3).map(view, num_parallel_calls=2)
  for step, got in enumerate(steps.as_numpy_iterator()):
    draws = weak.draw_weak(tf.constant([1, step]), 400, (32, 32))
    np.testing.assert_array_equal(got, replay(images, draws, flip))


def test_reach_can_be_chosen():
  images = random_images(200, (32, 40))
  view = weak.weak_view(images, SEED, rotation=60.0, translation=0.5)
  draws = weak.draw_weak(SEED, 200, (32, 40), rotation=60.0, translation=0.5)
  np.testing.assert_array_equal(view, replay(images, draws, flip=False))
  still = weak.weak_view(images, SEED, rotation=0.0, translation=0.0)
  np.testing.assert_array_equal(still, images)


def test_draws_are_uniform_within_their_reach():
  draws = weak.draw_weak(SEED, 40_000, (32, 64))
  draws = weak.WeakDraws(*(drawn.numpy() for drawn in draws))
  assert np.abs(draws.angle).max() <= 5.0
  bins, _ = np.histogram(draws.angle, bins=20, range=(-5, 5))
  assert scipy.stats.chisquare(bins).pvalue > 1e-3
  for shift, reach in ((draws.shift_x, 8), (draws.shift_y, 4)):
    pixels, counts = np.unique(shift, return_counts=True)
    assert pixels.tolist() == list(range(-reach, reach + 1))
    # Only half an interval rounds to either end.
    expected = np.full(2 * reach + 1, 40_000 / (2 * reach))
    expected[[0, -1]] /= 2
    assert scipy.stats.chisquare(counts, expected).pvalue > 1e-3
  assert scipy.stats.chisquare(np.bincount(draws.flip)).pvalue > 1e-3


def test_one_seed_may_serve_both_views():
  ours = weak.draw_weak(SEED, 4000, (32, 32))
  theirs = randaugment.draw(SEED, 4000, (32, 32))
  ours = [ours.angle, ours.shift_x, ours.shift_y, ours.flip]
  theirs = [*theirs.operations.numpy().T, theirs.center_x, theirs.center_y]
  correlation = np.corrcoef(ours, theirs)[:4, 4:]
  assert np.abs(correlation).max() < 0.06


def test_same_view_for_the_same_seed_only():
  images = random_images(8, (32, 32))
  views = [
    weak.weak_view(images, tf.constant(seed)).numpy()
    for seed in ([1, 2], [1, 2], [1, 3], [2, 2])
  ]
  assert np.array_equal(views[0], views[1])
  assert not np.array_equal(views[0], views[2])
  assert not np.array_equal(views[0], views[3])


def test_size_need_not_be_known_before_the_run():
  spec = tf.TensorSpec([None, None, None, 3], tf.uint8)

  @tf.function(input_signature=[spec])
  def view(images):
    return weak.weak_view(images, SEED)

  for size in ((32, 32), (20, 31)):
    images = random_images(8, size)
    want = replay(images, weak.draw_weak(SEED, 8, size), flip=False)
    np.testing.assert_array_equal(view(images), want)


def test_bad_images_are_refused():
  with pytest.raises(UserError, match='float32; they must be uint8'):
    weak.weak_view(np.zeros([1, 8, 8, 3], np.float32), SEED)
  with pytest.raises(UserError, match=r'\(8, 8, 3\); they must be'):
    weak.weak_view(np.zeros([8, 8, 3], np.uint8), SEED)
