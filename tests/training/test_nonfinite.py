"""Losses that are not finite: stopped at, or skipped and counted."""

import jax
import numpy as np
import pytest
import tiny
from comparison import assert_same_state, logged

from moda_jax.errors import NonFiniteError, UserError
from moda_jax.training import loop
from moda_jax.training.experiment import Experiment
from moda_jax.training.saved_states import find_steps


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
  workdir = tmp_path_factory.mktemp('whole')
  return tiny.train(workdir), workdir


def break_steps(monkeypatch, steps):
  """Puts values that are not numbers into the inputs of some steps."""
  original = Experiment.make_batches

  def make_batches(self, start):
    for step, batch in enumerate(original(self, start), start + 1):
      weak = batch['source']['weak'].astype(np.float32) / 255
      if step in steps:
        weak = weak.at[1].set(np.nan)
      batch['source'] = batch['source'] | {'weak': weak}
      yield batch

  monkeypatch.setattr(Experiment, 'make_batches', make_batches)


def test_the_choice_changes_no_bit_where_all_is_finite(whole, tmp_path):
  outcome = tiny.train(tmp_path, on_nonfinite='skip')
  assert_same_state(outcome, whole[0])
  lines = logged(tmp_path)
  assert [line.pop('skipped') for line in lines] == [0, 0, 0]
  assert lines == logged(whole[1])


def test_skipped_steps_leave_the_state_and_are_counted(
  tmp_path, monkeypatch, caplog
):
  states = {}
  original = Experiment.make_batches

  def watch(self, start):
    take, self.train_step = self.train_step, None

    def train_step(state, batch):
      before = jax.device_get(state)
      state, metrics = take(state, batch)
      states[int(state.step)] = before, jax.device_get(state)
      return state, metrics

    self.train_step = train_step
    return original(self, start)

  monkeypatch.setattr(Experiment, 'make_batches', watch)
  break_steps(monkeypatch, [3, 4, 5])
  outcome = tiny.train(
    tmp_path, on_nonfinite='skip', max_skipped=3, ema_decay=0.9
  )
  assert sorted(states) == [1, 2, 3, 4, 5, 6]
  for step, (before, after) in states.items():
    same = [
      np.array_equal(a, b)
      for a, b in zip(
        jax.tree.leaves(before.replace(step=after.step)),
        jax.tree.leaves(after),
        strict=True,
      )
    ]
    assert all(same) == (step in (3, 4, 5))
  lines = logged(tmp_path)
  assert [line['skipped'] for line in lines] == [0, 2, 3]
  assert 'loss' not in lines[1]  # not one of its steps was finite
  assert np.isfinite(lines[2]['loss'])
  assert np.isfinite(outcome.accuracy)
  assert 'Not finite at step 4: class/b = nan' in caplog.text
  assert 'Skipped; 2 of at most 3.' in caplog.text


def test_more_than_may_be_skipped_end_the_run_whenever_it_was_stopped(
  tmp_path, monkeypatch
):
  break_steps(monkeypatch, [1, 3, 5])
  values = {'on_nonfinite': 'skip', 'max_skipped': 2, 'log_every': 1}
  tiny.train(tmp_path, **values, steps=4)
  with pytest.raises(NonFiniteError) as error:
    tiny.train(tmp_path, **values)
  for text in ('step 5', 'class/b = nan', '3 steps', 'max_skipped = 2'):
    assert text in str(error.value)


def test_a_diverged_run_goes_on_in_its_folder_by_skipping(
  tmp_path, monkeypatch
):
  break_steps(monkeypatch, [5])
  with pytest.raises(NonFiniteError, match='on_nonfinite=skip goes on here'):
    tiny.train(tmp_path / 'run')
  tiny.train(tmp_path / 'run', on_nonfinite='skip')
  assert [line.get('skipped') for line in logged(tmp_path / 'run')] == [
    None,
    None,
    1,
  ]


def test_several_seeds_skip_their_own_steps(tmp_path, monkeypatch):
  original = Experiment.make_batches

  def make_batches(self, start):
    for step, batch in enumerate(original(self, start), start + 1):
      weak = batch['source']['weak'].astype(np.float32) / 255
      if step == 2:
        weak = weak.at[1].set(np.nan)  # of the second seed
      batch['source'] = batch['source'] | {'weak': weak}
      yield batch

  monkeypatch.setattr(Experiment, 'make_batches', make_batches)
  values = {'method': 'source_only', 'seeds': 2, 'on_nonfinite': 'skip'}
  tiny.train(tmp_path, **values)
  assert [line['skipped'] for line in logged(tmp_path)] == [1, 1, 1]


def test_unknown_choices_are_refused(tmp_path):
  with pytest.raises(UserError, match=r'on_nonfinite = .* one of stop, skip'):
    tiny.train(tmp_path, on_nonfinite='ignore')
  with pytest.raises(UserError, match='max_skipped = -1 is not allowed'):
    tiny.train(tmp_path, max_skipped=-1)


def test_the_advice_of_a_diverged_run_can_be_followed(tmp_path, monkeypatch):
  """It says from where to go on, and that works."""
  with monkeypatch.context() as patch:
    break_steps(patch, [5])
    with pytest.raises(NonFiniteError) as error:
      tiny.train(tmp_path / 'run')
  assert f"--from='{tmp_path / 'run'}'" in str(error.value)
  config = tiny.make_run_config(learning_rate=0.1)
  loop.train(
    config,
    tmp_path / 'new',
    tiny.make_domains(),
    devices=1,
    start_from=tmp_path / 'run',
  )
  assert [line['step'] for line in logged(tmp_path / 'new')] == [6]
  assert find_steps(tmp_path / 'new') == [4, 6]
