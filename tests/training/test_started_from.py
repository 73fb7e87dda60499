"""Runs that start with the state of another."""

import json
import shutil

import jax
import numpy as np
import optax
import pytest
import tiny
from comparison import assert_same_state, logged

from moda_jax.errors import UserError
from moda_jax.training.experiment import Experiment
from moda_jax.training.saved_states import find_steps, load_state
from moda_jax.training.started_from import take_over


def initial_state(**values):
  config = tiny.make_run_config(**values)
  return Experiment(config, tiny.make_domains(), 1).initial_state


def assert_equal(one, other):
  jax.tree.map(np.testing.assert_array_equal, one, other)


@pytest.fixture(scope='module')
def first(tmp_path_factory):
  """Returns a run of four steps."""
  workdir = tmp_path_factory.mktemp('first') / 'run'
  return tiny.train(workdir, steps=4), workdir


def test_the_same_values_end_with_the_bits_of_one_run(first, tmp_path, caplog):
  caplog.set_level('INFO')
  straight = tiny.train(tmp_path / 'straight')
  outcome = tiny.train(tmp_path / 'new', first[1])
  assert_same_state(outcome, straight)
  assert logged(tmp_path / 'new') == logged(tmp_path / 'straight')[2:]
  assert f"step 4 of {first[1]}, with its optimizer's state" in caplog.text
  record = json.loads((tmp_path / 'new' / 'config.json').read_text())['record']
  assert record['started_from'] == {'path': str(first[1]), 'step': 4}


def test_a_run_that_has_started_needs_the_other_no_more(
  first, tmp_path, monkeypatch
):
  other = tmp_path / 'other'
  shutil.copytree(first[1], other)

  def die(*_):
    raise KeyboardInterrupt

  with monkeypatch.context() as patch:
    patch.setattr(Experiment, 'make_batches', die)
    with pytest.raises(KeyboardInterrupt):
      tiny.train(tmp_path / 'new', other)
  assert find_steps(tmp_path / 'new') == [4]
  shutil.rmtree(other)
  one = tiny.train(tmp_path / 'new')
  assert_same_state(one, tiny.train(tmp_path / 'again', first[1]))
  record = json.loads((tmp_path / 'new' / 'config.json').read_text())['record']
  assert record['started_from'] == {'path': str(other), 'step': 4}
  tiny.train(tmp_path / 'new', other)  # the same command again
  with pytest.raises(UserError, match=r'started_from\.path: .* there'):
    tiny.train(tmp_path / 'new', first[1])


def test_other_values_are_trained_with(first, tmp_path):
  slow = tiny.train(tmp_path / 'slow', first[1], learning_rate=1e-6)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, atol=1e-4),
    jax.device_get(slow.state.params),
    load_state(first[1]).params,
  )


def test_another_optimizer_begins_by_itself(first, caplog):
  caplog.set_level('INFO')
  values = {'optimizer': 'adam', 'schedule': 'cosine', 'ema_decay': 0.9}
  state, fits = take_over(initial_state(**values), first[1], 6)
  saved = load_state(first[1])
  assert not fits
  assert int(state.step) == 4
  assert_equal(state.params, saved.params)
  assert_equal(state.ema_params, saved.params)  # of which the other has none
  is_count = lambda x: isinstance(x, optax.ScaleByScheduleState)  # noqa: E731
  nodes = jax.tree.leaves(state.opt_state, is_leaf=is_count)
  assert [int(x.count) for x in nodes if is_count(x)] == [4]


def test_a_moving_average_is_taken_over_or_left(tmp_path):
  tiny.train(tmp_path / 'run', steps=2, ema_decay=0.5)
  saved = load_state(tmp_path / 'run')
  with_average, fits = take_over(
    initial_state(ema_decay=0.5), tmp_path / 'run', 6
  )
  assert fits
  assert_equal(with_average.ema_params, saved.ema_params)
  without, fits = take_over(initial_state(), tmp_path / 'run', 6)
  assert fits
  assert without.ema_params is None
  assert_equal(without.params, saved.params)


def test_what_does_not_fit_is_named(first, tmp_path):
  with pytest.raises(UserError, match=r'not fit this config: params/\S+ is'):
    tiny.train(tmp_path / 'a', first[1], method='mdan')
  with pytest.raises(UserError, match=r'at step 4, .* ends at step 4'):
    tiny.train(tmp_path / 'b', first[1], steps=4)
  with pytest.raises(UserError, match='does not hold a run'):
    tiny.train(tmp_path / 'c', tmp_path / 'none')
  with pytest.raises(UserError, match='is the run itself'):
    tiny.train(first[1], first[1])
  (tmp_path / 'd').mkdir()
  shutil.copy(first[1] / 'config.json', tmp_path / 'd')
  with pytest.raises(UserError, match='does not hold a checkpoint yet'):
    tiny.train(tmp_path / 'e', tmp_path / 'd')
  assert not (tmp_path / 'e').exists()
