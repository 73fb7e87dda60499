"""Views at magnitudes of their own: draws, pixels, probes."""

import numpy as np
import pillow_views
import pytest
import scipy.stats
import tensorflow as tf
import tiny
from PIL import Image

from moda_jax.data import batches, learned, randaugment
from moda_jax.data.operations import OPERATIONS
from moda_jax.data.options import ViewOptions
from moda_jax.data.spec import Part
from moda_jax.errors import UserError
from moda_jax.objectives import METHODS

IMAGES = np.random.default_rng(0).integers(0, 256, (96, 32, 32, 3), np.uint8)
SEED = tf.constant([3, 5], tf.int64)
OPTIONS = ViewOptions(randaugment_exclude=('FlipX',))
SPEC = METHODS['moda_fm'].batch_spec


def draw_weights():
  return np.random.default_rng(1).uniform(0.5, 1, learned.SHAPE)


def test_probabilities_are_relative_to_the_largest_weight():
  weights = draw_weights()
  found = learned.to_probabilities(weights, OPTIONS)
  for row, p in zip(weights, found, strict=True):
    relative = [(w + 0.01) / (max(row) + 0.01) for w in row]
    kept = [r if r >= 0.85 else 0.0 for r in relative]
    assert 0 < kept.count(0.0) < len(kept)
    np.testing.assert_allclose(p, np.array(kept) / sum(kept))


def test_weights_of_zero_are_all_alike():
  found = learned.to_probabilities(np.zeros(learned.SHAPE), OPTIONS)
  np.testing.assert_allclose(found, 1 / 11)


@pytest.mark.parametrize('cutout', ['first', ''])
def test_equals_the_same_draws_by_pillow(cutout):
  found, cells = learned.augment(IMAGES, SEED, OPTIONS, cutout=cutout)
  draws = randaugment.draw(SEED, 96, (32, 32), exclude=('FlipX',))
  operations, levels = np.divmod(cells, 11)
  np.testing.assert_array_equal(operations, draws.operations)
  for i, pixels in enumerate(IMAGES):
    image = Image.fromarray(pixels)
    if cutout:
      center = float(draws.center_x[i]), float(draws.center_y[i])
      image = pillow_views.cutout(image, *center)
    for j in np.flatnonzero(levels[i]):  # at 0 it stays as it is
      name, sign = OPERATIONS[operations[i, j]], int(draws.signs[i, j])
      value = pillow_views.value(name, 3 * levels[i, j], sign)
      image = pillow_views.operation(image, name, value)
    np.testing.assert_array_equal(found[i], image)


def test_magnitudes_are_drawn_by_their_probabilities():
  p = learned.to_probabilities(draw_weights(), OPTIONS)
  image = np.zeros((4000, 2, 2, 3), np.uint8)
  _, cells = learned.augment(image, SEED, OPTIONS, probabilities=p)
  used = [i for i, name in enumerate(OPERATIONS) if name != 'FlipX']
  counts = np.bincount(np.ravel(cells), minlength=p.size).reshape(p.shape)
  assert not counts[OPERATIONS.index('FlipX')].any()
  assert not counts[p == 0].any()
  expected = p[used] / len(used) * counts.sum()
  possible = expected > 0
  found = counts[used][possible]
  assert scipy.stats.chisquare(found, expected[possible]).pvalue > 1e-3


def make_batch_fn(**values):
  config = tiny.make_run_config(strong='learned', **values)
  return batches.make_batch_fn(tiny.make_domains(), SPEC, config)


@pytest.mark.slow
def test_a_batch_is_a_function_of_step_and_probabilities():
  batch_fn, step = make_batch_fn(), tf.constant(3, tf.int64)
  p = learned.to_probabilities(draw_weights(), OPTIONS)
  (made,) = batches.make_batches(batch_fn, 3, 4, probabilities=p)
  tf.nest.map_structure(
    np.testing.assert_array_equal, made, batch_fn(step, probabilities=p)
  )
  other = batch_fn(step)  # with equal probabilities
  assert np.any(made['target']['strong'] != other['target']['strong'])
  tf.nest.map_structure(
    np.testing.assert_array_equal, made['probe'], other['probe']
  )


def test_probes_are_of_the_sources_in_turn():
  batch_fn = make_batch_fn(weak_augment='never')
  for step in (0, 1):
    batch = batch_fn(tf.constant(step, tf.int64))
    source, probe = batch['source'], batch['probe']
    unchanged = np.flatnonzero(np.all(probe['cells'] % 11 == 0, axis=1))
    for i in range(8):
      turn = (i + step) % 3
      assert probe['label'][i] == source['label'][turn, i]
      if i in unchanged:
        found, expected = probe['input'][i], source['weak'][turn, i]
        np.testing.assert_array_equal(found, expected)


def test_a_part_has_the_rows_of_the_whole_batch():
  batch_fn, step = make_batch_fn(), tf.constant(2, tf.int64)
  p = learned.to_probabilities(draw_weights(), OPTIONS)
  whole = batch_fn(step, None, p)
  for start, stop in ((0, 4), (4, 8), (2, 3)):
    part = batch_fn(step, Part(start, stop, 8), p)
    for group in ('target', 'probe'):
      for key, rows in part[group].items():
        np.testing.assert_array_equal(rows, whole[group][key][start:stop])


def test_other_methods_and_views_have_no_probes():
  config = tiny.make_run_config(strong='learned')
  spec = METHODS['moda'].batch_spec
  batch_fn = batches.make_batch_fn(tiny.make_domains(), spec, config)
  assert 'probe' not in batch_fn(tf.constant(0, tf.int64))


def test_rows_of_features_are_refused():
  config = tiny.make_run_config(strong='learned')
  domains = tiny.make_sparse_domains()
  with pytest.raises(UserError, match="strong = 'learned' is for images"):
    batches.make_batch_fn(domains, SPEC, config)
