"""Stopped runs: saved at once, and nothing to be seen of it in the end."""

import os
import shutil
import signal

import pytest
import tiny
from comparison import assert_same_state, logged

from moda_jax.errors import Interrupted, Terminated
from moda_jax.training import loop
from moda_jax.training.evaluation import Evaluator
from moda_jax.training.experiment import Experiment
from moda_jax.training.saved_states import find_steps

# Lines of 3 steps, evaluations of 4, checkpoints of 5.
INTERVALS = {'log_every': 3, 'eval_every': 4, 'checkpoint_every': 5}


def run(workdir, **values):
  config = tiny.make_run_config(**(INTERVALS | {'steps': 10} | values))
  return loop.train(config, workdir, tiny.make_domains(), devices=1)


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
  workdir = tmp_path_factory.mktemp('whole')
  return run(workdir), workdir


def send_in_step(monkeypatch, steps, number):
  """Sends this process a signal while a step of those given is under way."""
  original = Experiment.make_batches

  def make_batches(self, start):
    for step, batch in enumerate(original(self, start), start + 1):
      if step in steps:
        os.kill(os.getpid(), number)
      yield batch

  monkeypatch.setattr(Experiment, 'make_batches', make_batches)


@pytest.mark.parametrize(
  ('number', 'error', 'status', 'steps'),
  [
    (signal.SIGINT, Interrupted, 130, [7]),
    # Between two lines, at an evaluation, right behind it, in the last step.
    (signal.SIGTERM, Terminated, 143, [2, 4, 5, 10]),
  ],
)
def test_a_stopped_run_is_in_the_end_as_if_never_stopped(
  whole, tmp_path, monkeypatch, number, error, status, steps
):
  with monkeypatch.context() as patch:
    send_in_step(patch, steps, number)
    for step in steps:
      lines = logged(tmp_path)
      with pytest.raises(Interrupted, match=f'step {step} of 10') as end:
        run(tmp_path)
      assert type(end.value) is error
      assert end.value.status == status
      assert find_steps(tmp_path)[-1] == step
      assert logged(tmp_path)[: len(lines)] == lines
  assert_same_state(run(tmp_path), whole[0])
  assert logged(tmp_path) == logged(whole[1])
  assert [line['step'] for line in logged(tmp_path)] == [3, 4, 5, 6, 8, 9, 10]


def test_a_line_that_is_due_when_a_run_stops_waits(tmp_path, monkeypatch):
  """Evaluating may take longer than the time that is left."""
  with monkeypatch.context() as patch:
    send_in_step(patch, [4], signal.SIGTERM)
    patch.setattr(Evaluator, 'accuracies', lambda *_: pytest.fail('evaluated'))
    with pytest.raises(Terminated):
      run(tmp_path)
  assert [line['step'] for line in logged(tmp_path)] == [3]


def test_averages_of_several_seeds_go_on(tmp_path, monkeypatch):
  values = {'seeds': 2, 'method': 'source_only'}
  straight = run(tmp_path / 'straight', **values)
  with monkeypatch.context() as patch:
    send_in_step(patch, [5, 7], signal.SIGTERM)
    for _ in range(2):
      with pytest.raises(Terminated):
        run(tmp_path / 'stopped', **values)
  assert_same_state(run(tmp_path / 'stopped', **values), straight)
  assert logged(tmp_path / 'stopped') == logged(tmp_path / 'straight')


def test_a_lost_file_of_metrics_costs_no_accuracy(whole, tmp_path, caplog):
  workdir = tmp_path / 'run'
  shutil.copytree(whole[1], workdir)
  caplog.set_level('INFO')
  (workdir / 'metrics.jsonl').unlink()
  outcome = run(workdir)
  assert outcome.accuracy == whole[0].accuracy
  assert 'labels of the target are not known' not in caplog.text
  assert 'the last line of metrics is missing' in caplog.text
  (line,) = logged(workdir)
  assert line['step'] == 10
  evaluated = {'target/accuracy', *(k for k in line if 'selection/' in k)}
  assert line.keys() == {'step', *evaluated}
  last = logged(whole[1])[-1]
  assert {k: line[k] for k in evaluated} == {k: last[k] for k in evaluated}
  lines = (whole[1] / 'metrics.jsonl').read_text().splitlines(keepends=True)
  lines[-1] = lines[-1].replace('loss', '"oss')
  (workdir / 'metrics.jsonl').write_text(''.join(lines))
  assert run(workdir).accuracy == whole[0].accuracy
  assert logged(workdir)[:-1] == logged(whole[1])[:-1]
