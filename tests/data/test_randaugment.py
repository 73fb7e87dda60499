"""The strong view: chains of operations, draws, purity and bad input."""

import collections
import hashlib
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pillow_views
import pytest
import scipy.stats
import tensorflow as tf

from moda_jax.data import magnitudes, randaugment
from moda_jax.errors import UserError

IMAGES = np.random.default_rng(0).integers(0, 256, (48, 32, 32, 3), np.uint8)
SEED = tf.constant([3, 5], tf.int64)


def replay(images, draws, magnitude, cutout):
  draws = randaugment.Draws(*(drawn.numpy() for drawn in draws))
  names = np.array(randaugment.OPERATIONS)[draws.operations]
  centers = zip(draws.center_x, draws.center_y, strict=True)
  rows = zip(images, names, draws.signs, centers, strict=True)
  return np.stack(
    [
      pillow_views.strong(image, chosen, signs, magnitude, center, cutout)
      for image, chosen, signs, center in rows
    ]
  )


@pytest.mark.parametrize(('n', 'cutout'), [(2, 'last'), (3, 'first')])
def test_equals_the_same_draws_by_pillow(n, cutout):
  @tf.function
  def augment(seed, magnitude):
    return randaugment.randaugment(
      IMAGES, seed, n=n, magnitude=magnitude, cutout=cutout
    )

  for magnitude in (0, 3, 10, 30):
    seed = tf.constant([n, magnitude])
    got = augment(seed, tf.constant(magnitude))
    draws = randaugment.draw(seed, 48, (32, 32), n)
    want = replay(IMAGES, draws, magnitude, cutout)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize('size', [(37, 53), (256, 256)], ids=str)
def test_other_sizes_with_nothing_known_before_the_run(size):
  rng = np.random.default_rng(1)
  images = rng.integers(0, 256, (24, *size, 3), np.uint8)
  spec = tf.TensorSpec([None, None, None, 3], tf.uint8)

  @tf.function(input_signature=[spec, tf.TensorSpec([2], tf.int64)])
  def augment(images, seed):
    return randaugment.randaugment(images, seed, magnitude=9)

  draws = randaugment.draw(SEED, 24, size)
  want = replay(images, draws, 9, 'first')
  np.testing.assert_array_equal(augment(images, SEED), want)


def test_excluded_operations_are_never_drawn():
  exclude = ('FlipX', 'Rotate')
  draws = randaugment.draw(SEED, 2000, (32, 32), exclude=exclude)
  drawn = set(np.array(randaugment.OPERATIONS)[draws.operations].flat)
  assert drawn == set(randaugment.OPERATIONS) - set(exclude)
  got = randaugment.randaugment(IMAGES, SEED, magnitude=7, exclude=exclude)
  draws = randaugment.draw(SEED, 48, (32, 32), exclude=exclude)
  want = replay(IMAGES, draws, 7, 'first')
  np.testing.assert_array_equal(got, want)


def is_uniform(counts):
  return scipy.stats.chisquare(counts).pvalue > 1e-3


def test_draws_are_uniform_and_independent():
  draws = [
    randaugment.draw(tf.constant([0, step]), 512, (32, 40), exclude=('FlipX',))
    for step in range(60)
  ]
  draws = randaugment.Draws(*map(np.concatenate, zip(*draws, strict=True)))
  names = np.unique(draws.operations)
  assert len(names) == 14
  first, second = np.searchsorted(names, draws.operations).T
  # Pairs: with replacement, and the second knows nothing of the first.
  assert is_uniform(np.bincount(first * 14 + second, minlength=196))
  signs = (draws.signs + 1) // 2
  assert is_uniform(np.bincount(first * 4 + signs @ [2, 1], minlength=56))
  cells = draws.center_y.astype(int) * 40 + draws.center_x.astype(int)
  assert draws.center_x.max() < 40
  assert draws.center_y.max() < 32
  assert is_uniform(np.bincount(cells, minlength=32 * 40))
  assert is_uniform(np.bincount(cells % 2 * 14 + first, minlength=28))


def test_magnitudes_are_uniform_and_independent_of_the_operations():
  def draw(step):
    seed = tf.stack([step, 7])
    sign = randaugment.draw(seed, 1, (8, 8)).signs[0, 0]
    return magnitudes.draw_magnitude(seed, 3, 10), sign

  drawn = tf.data.Dataset.range(2400).map(draw).as_numpy_iterator()
  counts = collections.Counter((int(m), int(sign)) for m, sign in drawn)
  assert {magnitude for magnitude, _ in counts} == set(range(3, 11))
  assert len(counts) == 16
  assert is_uniform(list(counts.values()))


def digest_of_steps(num_parallel_calls):
  """Returns a digest of twenty steps' views, made as training makes them."""

  def views(step):
    seed = tf.stack([step, 11])
    magnitude = magnitudes.draw_magnitude(seed, 3, 10)
    return randaugment.randaugment(IMAGES, seed, magnitude=magnitude)

  steps = tf.data.Dataset.range(20)
  steps = steps.map(views, num_parallel_calls)
  digest = hashlib.sha256()
  for batch in steps.as_numpy_iterator():
    digest.update(batch.tobytes())
  return digest.hexdigest()


@pytest.mark.slow
def test_same_bits_in_another_process_that_compiles_once():
  digest = digest_of_steps(None)
  assert digest_of_steps(4) == digest
  root = pathlib.Path(__file__).parents[2]
  program = 'import test_randaugment as t; print(t.digest_of_steps(2))'
  paths = [str(root), *(str(root / 'tests' / part) for part in ('', 'data'))]
  # The compiler's log: a step that compiles again is a thousand times slower.
  environment = {
    'PYTHONPATH': os.pathsep.join(paths),
    'TF_CPP_VMODULE': 'device_compiler=1',
    'TF_CPP_MIN_LOG_LEVEL': '0',
  }
  done = subprocess.run(
    [sys.executable, '-c', program],
    env=os.environ | environment,
    capture_output=True,
    text=True,
    check=True,
  )
  assert done.stdout.split() == [digest]
  compiled = re.findall('Compilation of XLA executable time', done.stderr)
  assert len(compiled) == 1


def test_different_seeds_give_different_views():
  views = [
    randaugment.randaugment(IMAGES, tf.constant(seed))
    for seed in ([0, 0], [0, 1], [1, 0])
  ]
  assert not np.array_equal(views[0], views[1])
  assert not np.array_equal(views[0], views[2])


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    ({'exclude': ('Rotat',)}, "'Rotat'; known: AutoContrast, Equalize"),
    ({'exclude': randaugment.OPERATIONS}, 'every operation'),
    ({'magnitude': 31}, 'magnitude is 31; it must be one of 0'),
    ({'magnitude': -1}, 'magnitude is -1'),
    ({'magnitude': 2.5}, r'magnitude is 2\.5'),
    ({'n': 0}, 'n is 0'),
    ({'cutout': 'middle'}, "'middle'; it must be 'first' or 'last'"),
    ({'images': IMAGES.astype(np.float32)}, 'float32; they must be uint8'),
    ({'images': IMAGES[0]}, r'\(32, 32, 3\); they must be \[N, H, W, 3\]'),
    ({'images': IMAGES[..., :1]}, r'\(48, 32, 32, 1\); they must be'),
  ],
)
def test_bad_input_is_refused_before_the_first_batch(arguments, message):
  arguments = {'images': IMAGES} | arguments

  def view(step):
    return randaugment.randaugment(seed=tf.stack([step, 0]), **arguments)

  with pytest.raises(UserError, match=message):
    tf.data.Dataset.range(1).map(view)


def test_bad_operation_names_and_magnitudes_are_refused():
  with pytest.raises(UserError, match="'Blur'; known: AutoContrast"):
    randaugment.apply_operation(IMAGES, 'Blur', 1.0)
  with pytest.raises(UserError, match="'Blur'; known: AutoContrast"):
    magnitudes.operation_value('Blur', 3, 1)
  with pytest.raises(UserError, match=r'magnitude is 30\.5'):
    magnitudes.operation_value('Rotate', 30.5, 1)
  with pytest.raises(UserError, match='magnitude is 31'):
    magnitudes.draw_magnitude(SEED, 3, 31)
  with pytest.raises(UserError, match='from 10 to 3'):
    magnitudes.draw_magnitude(SEED, 10, 3)
  with pytest.raises(UserError, match='int32; they must be uint8'):
    randaugment.cutout(IMAGES.astype(np.int32), [0.0], [0.0])
