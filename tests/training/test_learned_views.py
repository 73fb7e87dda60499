"""Weights of magnitudes: what they learn, and runs that resume with them."""

import jax
import numpy as np
import pytest
import tiny

from moda_jax.data import learned
from moda_jax.data.operations import OPERATIONS
from moda_jax.data.options import ViewOptions
from moda_jax.training import learned_views, several_seeds
from moda_jax.training.experiment import Experiment
from moda_jax.training.run_folder import read_metrics
from moda_jax.training.train_step import TrainState

VALUES = {'strong': 'learned', 'steps': 12, 'eval_every': 6}
EPOCH = 5  # of `tiny.make_domains`: 40 examples, 8 in a step


class Sure:
  """A method that predicts class 1 with the mean of its input."""

  predictors, axis_name = (), None

  def predict(self, params, state, x):
    p = x.mean(axis=1, keepdims=True)
    return jax.numpy.concatenate([1 - p, p], axis=1)


def test_weights_follow_what_is_recognised_and_change_at_epochs_ends():
  options = ViewOptions(learned_decay=0.9)
  learning = learned_views.Learning(options, epoch_steps=2)
  rng = np.random.default_rng(0)
  weights, seen = learned_views.first_weights(), {}
  for step in range(4):
    label, x = rng.integers(0, 2, 6), rng.uniform(size=(6, 3))
    cells = rng.integers(0, 4, (6, 2))
    for y, row, own in zip(label, x, cells, strict=True):
      match = row.mean() if y else 1 - row.mean()
      for cell in own:
        seen.setdefault((step // 2, cell), []).append(match)
    state = TrainState(np.int32(step), {}, {}, {}, view_weights=weights)
    probe = {'input': x, 'label': label, 'cells': cells}
    before, weights = weights, learning.observe(Sure(), state, probe)
    if step % 2 == 0:
      np.testing.assert_array_equal(weights['weight'], before['weight'])
  expected = np.ones(learned.SHAPE).ravel()
  for (_, cell), matches in sorted(seen.items()):
    for _ in matches:  # as if each had been the mean
      expected[cell] = 0.9 * expected[cell] + 0.1 * np.mean(matches)
  found = np.ravel(weights['weight'])
  np.testing.assert_allclose(found, expected, rtol=1e-5)
  assert not np.any(weights['seen'])


class Killed(Exception):
  """Represents a process that dies between two steps."""


def die_after(monkeypatch, steps):
  """Makes the next run fail after `steps` steps, over all its epochs."""
  original, taken = Experiment.make_batches, []

  def make_batches(self, *args):
    for batch in original(self, *args):
      if len(taken) == steps:
        raise Killed
      taken.append(batch)
      yield batch

  monkeypatch.setattr(Experiment, 'make_batches', make_batches)


def assert_equal(one, other):
  jax.tree.map(
    np.testing.assert_array_equal,
    jax.device_get(one.state),
    jax.device_get(other.state),
  )


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
  """Returns a run that was never interrupted."""
  workdir = tmp_path_factory.mktemp('whole')
  return tiny.train(workdir, **VALUES, checkpoint_every=1), workdir


@pytest.mark.parametrize(
  'step',
  [
    pytest.param(4, marks=pytest.mark.slow),
    EPOCH,
    pytest.param(6, marks=pytest.mark.slow),
  ],
)
def test_a_run_killed_about_the_end_of_an_epoch_resumes_to_the_same_bits(
  step, whole, tmp_path, monkeypatch
):
  with monkeypatch.context() as patch:
    die_after(patch, step)
    with pytest.raises(Killed):
      tiny.train(tmp_path, **VALUES, checkpoint_every=1)
  assert_equal(tiny.train(tmp_path, **VALUES, checkpoint_every=1), whole[0])


def test_epochs_have_the_views_of_their_own_weights(whole):
  outcome, workdir = whole
  experiment, state = outcome.experiment, outcome.state
  assert experiment.epoch_steps == EPOCH
  weight = np.array(state.view_weights['weight'])
  assert (weight != 1).any()
  assert ((weight >= 0) & (weight <= 1)).all()
  shown = [line['view_magnitude'] for line in read_metrics(workdir)]
  assert shown[:2] == pytest.approx([15, 15])  # uniform over 0, 3, …, 30
  p = learned.to_probabilities(weight, ViewOptions())
  used = [name != 'FlipX' for name in OPERATIONS]  # which the config excludes
  assert shown[-1] == pytest.approx((p @ np.arange(0, 31, 3))[used].mean())
  seen = np.array(state.view_weights['seen'])
  assert seen.sum() == 2 * 8 * 2  # two steps, eight probes, two operations


@pytest.mark.slow
def test_several_seeds_learn_each_for_itself(tmp_path):
  together = tiny.train(tmp_path / 'both', **VALUES, seed=4, seeds=2)
  for i, seed in enumerate((4, 5)):
    single = tiny.train(tmp_path / str(seed), **VALUES, seed=seed)
    own = several_seeds.take_seed(together.state, i)
    jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4),
      own.view_weights,
      single.state.view_weights,
    )


@pytest.mark.slow
def test_eight_devices_learn_the_same():
  with jax.enable_x64(True):
    one, eight = (take_steps(devices) for devices in (1, 8))
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12),
    one,
    eight,
  )


def take_steps(devices):
  config = tiny.make_run_config(**VALUES)
  experiment = Experiment(config, tiny.make_domains(), devices)
  state = jax.tree.map(tiny.in_float64, experiment.initial_state)
  history = []

  def read_state():
    return state

  for batch in experiment.feed(0, read_state):
    state, metrics = experiment.train_step(state, batch)
    history.append(jax.device_get(metrics))
  return history, jax.device_get((state.params, state.view_weights))


@pytest.mark.slow
@pytest.mark.parametrize('strong', ['learned', 'randaugment'])
def test_a_run_that_starts_from_one_with_learned_views(strong, whole, tmp_path):
  outcome = tiny.train(
    tmp_path, whole[1], **VALUES | {'strong': strong, 'steps': 14}
  )
  weights = outcome.state.view_weights
  assert (weights is None) == (strong != 'learned')
  assert int(outcome.state.step) == 14
