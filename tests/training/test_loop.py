"""The loop: logging, checkpoints, resuming, refusals."""

import json
import os
import signal

import closeness
import jax
import numpy as np
import pytest
import tiny

from moda_jax.errors import Interrupted, NonFiniteError, UserError
from moda_jax.training import loop as train
from moda_jax.training import reopened
from moda_jax.training.evaluation import Evaluator
from moda_jax.training.experiment import Experiment
from moda_jax.training.run_folder import read_metrics


def run(workdir, devices=1, **values):
  config = tiny.make_run_config(**values)
  return train.train(config, workdir, tiny.make_domains(), devices=devices)


def assert_same_state(one, other):
  jax.tree.map(
    np.testing.assert_array_equal,
    jax.device_get(one.state),
    jax.device_get(other.state),
  )


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
  """Returns a run that was never interrupted."""
  workdir = tmp_path_factory.mktemp('whole')
  return run(workdir), workdir


@pytest.mark.slow
def test_a_run_killed_before_its_first_checkpoint(tmp_path, monkeypatch):
  with monkeypatch.context() as patch:
    die_after(patch, 1)
    with pytest.raises(Killed):
      run(tmp_path, log_every=1)
  run(tmp_path, log_every=1)
  steps = [line['step'] for line in read_metrics(tmp_path)]
  assert steps == [1, 2, 3, 4, 5, 6]


class Killed(Exception):
  """Represents a process that dies between two steps."""


def die_after(monkeypatch, steps):
  """Makes the training of the next run fail after `steps` steps."""
  original = Experiment.make_batches

  def make_batches(self, start):
    for i, batch in enumerate(original(self, start)):
      if i == steps:
        raise Killed
      yield batch

  monkeypatch.setattr(Experiment, 'make_batches', make_batches)


def test_a_run_leaves_config_metrics_events_and_checkpoints(whole):
  outcome, workdir = whole
  config = json.loads((workdir / 'config.json').read_text())
  assert config['objective']['method'] == 'moda_fm'
  lines = read_metrics(workdir)
  assert [line['step'] for line in lines] == [2, 4, 6]
  assert lines[-1]['target/accuracy'] == outcome.accuracy
  assert {'alpha/a', 'confident', 'loss', 'images_per_second'} <= set(lines[0])
  assert list(workdir.glob('events.out.tfevents*'))
  assert (workdir / 'checkpoints' / '6').is_dir()


def test_accuracy_is_that_of_the_last_step(whole):
  outcome, workdir = whole
  test = outcome.experiment.domains.test
  predicted = outcome.experiment.predict(outcome.state, test.inputs)
  right = np.argmax(predicted, axis=1) == test.labels
  assert outcome.accuracy == right.mean()
  best = max(line['target/accuracy'] for line in read_metrics(workdir))
  assert outcome.best_accuracy == best


def test_a_killed_run_ends_with_the_same_bits(whole, tmp_path, monkeypatch):
  with monkeypatch.context() as patch:
    die_after(patch, 5)  # the last checkpoint is that of step 4
    with pytest.raises(Killed):
      run(tmp_path)
  assert_same_state(run(tmp_path), whole[0])
  keys = ('step', 'loss', 'target/accuracy')
  resumed, straight = (
    [[line[key] for key in keys] for line in read_metrics(path)]
    for path in (tmp_path, whole[1])
  )
  assert resumed == straight


@pytest.mark.parametrize(
  'values',
  [
    {'optimizer': 'adamw', 'schedule': 'cosine', 'ema_decay': 0.9},
    pytest.param(
      {'optimizer': 'sgd', 'schedule': 'dann', 'warmup_steps': 2},
      marks=pytest.mark.slow,
    ),
    pytest.param(
      {'method': 'moda_fm_darn', 'clip_norm': 0.5, 'weight_decay': 0.1},
      marks=pytest.mark.slow,
    ),
    pytest.param({'method': 'moe'}, marks=pytest.mark.slow),
  ],
  ids=lambda values: next(iter(values.values())),
)
def test_other_optimizers_and_states_resume_to_the_same_bits(
  values, tmp_path, monkeypatch
):
  straight = run(tmp_path / 'straight', **values)
  with monkeypatch.context() as patch:
    die_after(patch, 5)
    with pytest.raises(Killed):
      run(tmp_path / 'killed', **values)
  assert_same_state(run(tmp_path / 'killed', **values), straight)


def test_a_finished_run_is_not_trained_again(whole):
  again = run(whole[1])
  assert_same_state(again, whole[0])
  assert again.accuracy == whole[0].accuracy
  assert len(read_metrics(whole[1])) == 3


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_leaves(number, tmp_path, monkeypatch):
  original = Experiment.make_batches

  def make_batches(self, start):
    for i, batch in enumerate(original(self, start)):
      if i == 2:  # while the third step is under way
        os.kill(os.getpid(), number)
      yield batch

  handler = signal.getsignal(number)
  with monkeypatch.context() as patch:
    patch.setattr(Experiment, 'make_batches', make_batches)
    with pytest.raises(Interrupted, match='step 3 of 6'):
      run(tmp_path)
  assert (tmp_path / 'checkpoints' / '3').is_dir()
  assert signal.getsignal(number) is handler


def test_another_config_is_refused_and_nothing_is_lost(whole):
  before = sorted(p for p in whole[1].rglob('*'))
  with pytest.raises(UserError, match=r'mu_s: 0.2 there, 0.3 now'):
    run(whole[1], mu_s=0.3)
  assert sorted(p for p in whole[1].rglob('*')) == before


def test_other_data_is_refused(whole):
  config, data = tiny.make_run_config(), tiny.make_domains((40, 24, 30, 31, 21))
  with pytest.raises(UserError, match=r'32 examples.*31 examples'):
    train.train(config, whole[1], data, devices=1)


def test_a_workdir_that_cannot_be_written_is_refused(tmp_path):
  (tmp_path / 'file').write_text('not a folder')
  with pytest.raises(UserError) as error:
    run(tmp_path / 'file')
  assert f"--workdir='{tmp_path / 'file'}'" in str(error.value)
  assert (tmp_path / 'file').read_text() == 'not a folder'


def test_a_workdir_without_a_name_is_refused():
  with pytest.raises(UserError, match="--workdir='' does not name a folder"):
    run('')


@pytest.mark.parametrize('content', ['[]', '{"half', None])
def test_a_folder_without_a_sound_config_is_refused(content, tmp_path):
  (tmp_path / 'checkpoints' / '4').mkdir(parents=True)
  if content is not None:
    (tmp_path / 'config.json').write_text(content)
  before = sorted(tmp_path.rglob('*'))
  with pytest.raises(UserError, match='cannot be used') as error:
    run(tmp_path)
  assert str(tmp_path) in str(error.value)
  assert sorted(tmp_path.rglob('*')) == before


def test_another_place_of_the_data_is_the_same_config(whole):
  run(whole[1], data_dir='elsewhere')


def test_divergence_names_step_and_term_and_keeps_the_checkpoint(
  tmp_path, monkeypatch
):
  original = Experiment.make_batches

  def make_batches(self, start):
    for i, batch in enumerate(original(self, start), start):
      if i == 4:  # a broken input in the fifth step
        weak = batch['source']['weak'].astype(np.float32)
        weak = weak.at[1].set(np.nan)
        batch['source'] = batch['source'] | {'weak': weak}
      yield batch

  monkeypatch.setattr(Experiment, 'make_batches', make_batches)
  with pytest.raises(NonFiniteError) as error:
    run(tmp_path)
  for text in ('step 5', 'class/b = nan', 'checkpoint of step 4', 'mu_'):
    assert text in str(error.value)
  assert 'class/a' not in str(error.value)
  steps = {path.name for path in (tmp_path / 'checkpoints').iterdir()}
  assert steps == {'2', '4'}


def test_collapse_of_the_weights_is_told_once(tmp_path, monkeypatch, caplog):
  original = Experiment.__init__

  def init(self, *args):
    original(self, *args)
    params = self.initial_state.params | {'beta': np.float32([9, 0, 0])}
    self.initial_state = self.initial_state.replace(params=params)

  monkeypatch.setattr(Experiment, '__init__', init)
  run(tmp_path)
  told = [r.message for r in caplog.records if 'collapsed' in r.message]
  assert len(told) == 1
  assert 'α of a is 1.000' in told[0]
  assert 'mu_s' in told[0]


@pytest.mark.slow
def test_sparse_features_are_trained_on_and_evaluated(tmp_path):
  config = tiny.make_run_config(network='reviews', width=0.05)
  data = tiny.make_sparse_domains()
  outcome = train.train(config, tmp_path, data, devices=1)
  assert 0 <= outcome.accuracy <= 1


def test_the_batch_must_divide_by_the_devices(tmp_path):
  with pytest.raises(UserError, match=r'batch_size = 8 .* devices, 3'):
    run(tmp_path, devices=3)


def test_a_batch_that_all_devices_do_not_divide(tmp_path, caplog):
  """It is trained on by fewer; evaluation takes all of them."""
  config = tiny.make_run_config(batch_size=6)
  outcome = train.train(config, tmp_path, tiny.make_domains())
  assert outcome.experiment.devices == 6
  assert 'training on 6 of 8 devices' in caplog.text
  assert reopened.evaluate(config, tmp_path, tiny.make_domains()) == (
    outcome.accuracy
  )


@pytest.mark.parametrize(
  'name', ['objective.method', 'network.name', 'optimizer.name', 'views.strong']
)
def test_unknown_names_are_refused_with_the_known(tmp_path, name):
  with pytest.raises(UserError, match=f"config.{name} = 'x'.*allowed are"):
    run(tmp_path, **{name: 'x'})


def test_eight_devices_train_alike(whole, tmp_path):
  """In float32: near, not equal; exactness is tested in float64."""
  eight = run(tmp_path, devices=8)
  one = whole[0].state.params
  # Six steps, forward and backward.
  depth = 6 * 2 * tiny.LAYERS
  closeness.assert_close(eight.state.params, one, depth, np.float32)


def test_evaluate_reads_the_last_checkpoint(whole, tmp_path):
  outcome, workdir = whole
  config, data = tiny.make_run_config(), tiny.make_domains()
  assert reopened.evaluate(config, workdir, data) == outcome.accuracy
  with pytest.raises(UserError, match='does not hold a run'):
    reopened.evaluate(config, tmp_path / 'none', data)
  before = (workdir / 'metrics.jsonl').read_text()
  with (workdir / 'metrics.jsonl').open('a') as file:
    file.write('{"step": 7}\n')  # of a run that is still training
  reopened.evaluate(config, workdir, data)
  assert (workdir / 'metrics.jsonl').read_text() == before + '{"step": 7}\n'
  (workdir / 'metrics.jsonl').write_text(before)


@pytest.mark.slow
def test_evaluate_tells_each_source_and_what_chose_the_best(tmp_path, caplog):
  outcome = run(tmp_path, method='dann_ss')
  assert outcome.accuracy == max(outcome.by_predictor.values())
  caplog.clear()
  caplog.set_level('INFO')
  config = tiny.make_run_config(method='dann_ss')
  reopened.evaluate(config, tmp_path, tiny.make_domains())
  for source, accuracy in outcome.by_predictor.items():
    assert f'from {source} alone {100 * accuracy:.2f} %' in caplog.text
  assert 'chosen with target labels' in caplog.text


@pytest.mark.slow
def test_a_signal_in_the_last_step_ends_the_run_too(tmp_path, monkeypatch):
  original = Evaluator.accuracies

  def accuracies(self, state):
    if int(state.step) == 6:
      os.kill(os.getpid(), signal.SIGINT)
    return original(self, state)

  with monkeypatch.context() as patch:
    patch.setattr(Evaluator, 'accuracies', accuracies)
    with pytest.raises(Interrupted, match='step 6 of 6'):
      run(tmp_path)
  assert run(tmp_path).accuracy >= 0
