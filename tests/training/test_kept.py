"""The checkpoint of the evaluation that a criterion prefers is kept."""

import os
import shutil
import signal

import jax
import numpy as np
import pytest
import tiny
from comparison import assert_same_state, logged

import moda_jax
from moda_jax.errors import Interrupted, UserError
from moda_jax.selection.criteria import CRITERIA
from moda_jax.training import reopened
from moda_jax.training.evaluation import Evaluator
from moda_jax.training.experiment import Experiment
from moda_jax.training.kept import Keeper, order_evaluations
from moda_jax.training.saved_states import find_steps, load_state

# By step: the best is the second of six evaluations, but for one collapsed.
ENTROPY = {1: 0.9, 2: 0.3, 3: 0.5, 4: 0.4, 5: 0.1, 6: 0.6}
COLLAPSED = {5}
VALUES = {'eval_every': 1, 'checkpoint_every': 3, 'keep_checkpoints': 1}


@pytest.fixture
def scripted(monkeypatch):
  """Has every evaluation say what the test has written down."""

  def judge(self, state):
    step = int(state.step)
    return {
      'selection/entropy': ENTROPY[step],
      'selection/effective_classes': 1.0 if step in COLLAPSED else 2.9,
    }

  monkeypatch.setattr(Evaluator, 'judge', judge)


def train(workdir, **values):
  return tiny.train(workdir, **(VALUES | {'selection': 'entropy'} | values))


def make_line(step, value, effective=3.0, name='entropy'):
  return {
    'step': step,
    f'selection/{name}': value,
    'selection/effective_classes': effective,
  }


def test_the_best_of_equal_evaluations_is_the_latest():
  lines = [make_line(1, 0.2), make_line(2, 0.1), make_line(3, 0.1)]
  assert order_evaluations(lines, 'entropy', 3) == [3, 2, 1]
  assert order_evaluations(lines, '', 3) == []
  assert order_evaluations(lines, 'density', 3) == []


@pytest.mark.parametrize('name', CRITERIA)
def test_every_criterion_knows_its_direction(name):
  lines = [make_line(i, x, name=name) for i, x in enumerate((0.2, 0.9, 0.5))]
  best = 1 if CRITERIA[name].higher_is_better else 0
  assert order_evaluations(lines, name, 3)[0] == best


def test_a_collapsed_evaluation_or_one_not_finite_is_not_chosen():
  lines = [
    make_line(1, 0.0, effective=1.0),
    make_line(2, 0.5),
    make_line(3, float('nan')),
    {'step': 4},
  ]
  assert order_evaluations(lines, 'entropy', 3) == [2]
  assert Keeper('entropy', 3, lines[:1]).best == 0


def test_a_keeper_follows_evaluations():
  keeper = Keeper('entropy', 3, [make_line(1, 0.5)])
  bests = [keeper.best]
  for step, value in ((2, 0.7), (3, 0.2), (4, 0.9)):
    keeper.take_in(make_line(step, value))
    bests.append(keeper.best)
  assert bests == [1, 1, 3, 3]


def test_the_best_evaluation_is_kept_and_used(scripted, tmp_path, caplog):
  caplog.set_level('INFO')
  outcome = train(tmp_path)
  assert find_steps(tmp_path) == [2, 6]
  assert int(outcome.state.step) == 2
  line = logged(tmp_path)[1]
  assert outcome.accuracy == line['target/accuracy']
  assert outcome.best_accuracy == max(
    line['target/accuracy'] for line in logged(tmp_path)
  )
  assert 'taken: step 2 of 6, the best evaluation by entropy' in caplog.text
  assert 'at step 2, chosen by entropy' in caplog.text
  # It is the state of that step, not another one by its number.
  same = tiny.train(tmp_path.with_name('same'), **VALUES, steps=2)
  np.testing.assert_array_equal(
    *(jax.flatten_util.ravel_pytree(o.state.params)[0] for o in (outcome, same))
  )
  loaded = moda_jax.load(tmp_path)
  assert 'step=2' in repr(loaded)
  assert loaded.accuracy == line['target/accuracy']
  assert len(loaded.metrics['step']) == 6
  assert int(load_state(tmp_path).step) == 6  # what resumes


def test_evaluating_a_run_takes_the_kept_step(scripted, tmp_path):
  outcome = train(tmp_path)
  config = tiny.make_run_config(**VALUES, selection='entropy')
  again = reopened.evaluate(config, tmp_path, tiny.make_domains())
  assert again == outcome.accuracy
  # The same command again trains nothing and takes the same.
  assert_same_state(train(tmp_path), outcome)
  # Another choice is no other run.
  assert int(train(tmp_path, selection='').state.step) == 6


def test_a_stopped_run_keeps_what_a_whole_one_keeps(
  scripted, tmp_path, monkeypatch
):
  whole = train(tmp_path / 'whole')
  original = Experiment.make_batches

  def make_batches(self, start):
    for step, batch in enumerate(original(self, start), start + 1):
      if step in (1, 2, 4):
        os.kill(os.getpid(), signal.SIGINT)
      yield batch

  with monkeypatch.context() as patch:
    patch.setattr(Experiment, 'make_batches', make_batches)
    for _ in range(3):
      with pytest.raises(Interrupted):
        train(tmp_path / 'stopped')
  stopped = train(tmp_path / 'stopped')
  assert_same_state(stopped, whole)
  assert logged(tmp_path / 'stopped') == logged(tmp_path / 'whole')
  assert find_steps(tmp_path / 'stopped') == [2, 6]


def test_where_the_kept_checkpoint_is_gone_the_last_is_taken(
  scripted, tmp_path, caplog
):
  train(tmp_path)
  shutil.rmtree(tmp_path / 'checkpoints' / '2')
  assert 'step=6' in repr(moda_jax.load(tmp_path))
  assert 'of step 2, the best evaluation by entropy, is not there' in (
    caplog.text
  )


def test_a_damaged_kept_checkpoint_is_passed_over(scripted, tmp_path, caplog):
  train(tmp_path)
  for path in (tmp_path / 'checkpoints' / '2' / 'state').rglob('*'):
    if path.is_file():
      path.write_bytes(b'')
  assert 'step=6' in repr(moda_jax.load(tmp_path))
  assert 'the checkpoint of step 2 cannot be restored' in caplog.text


def test_where_all_have_collapsed_the_last_is_taken(
  scripted, tmp_path, monkeypatch, caplog
):
  monkeypatch.setattr(f'{__name__}.COLLAPSED', set(ENTROPY))
  assert int(train(tmp_path).state.step) == 6
  assert 'no evaluation can be chosen by entropy' in caplog.text


def test_what_cannot_be_chosen_by_is_refused():
  with pytest.raises(UserError, match=r'run.selection = .best. is not allowed'):
    Experiment(tiny.make_run_config(selection='best'), tiny.make_domains())
  message = r"'source_accuracy' needs source examples .* holdout=0.1"
  with pytest.raises(UserError, match=message):
    Experiment(
      tiny.make_run_config(selection='source_accuracy'), tiny.make_domains()
    )
