"""The search of values: what it trains, and what it leaves alone."""

import json
import os
import socket
import types

import numpy as np
import pytest
import tiny

import moda_jax
from configs import digits, mini, office31
from experiments import search
from experiments.runs import runner
from experiments.selection import ranges, study
from moda_jax.errors import Interrupted, NonFiniteError, UserError
from moda_jax.training import loop as train


class Trained:
  """Stands in for training: records configs, gives made-up accuracies."""

  def __init__(self):
    self.configs = []
    self.paths = []
    self.fail_at = {}  # number of the call to what it raises

  def __call__(self, config, path):
    self.configs.append(config)
    self.paths.append(path)
    error = self.fail_at.get(len(self.configs))
    if error is not None:
      raise error
    accuracy = 1 - abs(np.log10(config.objective.mu_d) + 3) / 10
    return types.SimpleNamespace(accuracy=accuracy)


@pytest.fixture
def trained(monkeypatch):
  trained = Trained()
  monkeypatch.setattr(train, 'train', trained)
  return trained


def read(folder):
  return json.loads((folder / 'values.json').read_text())


def test_each_source_is_the_target_in_turn(trained, tmp_path):
  config = mini.get_config('mnistm')
  best = search.search(config, 2, tmp_path)
  assert len(trained.configs) == 6
  for one in trained.configs:
    assert one.data.target in config.data.sources
    assert set(one.data.sources) == set(config.data.sources) - {one.data.target}
    assert 'mnistm' not in one.data.datasets
    for name, (low, high) in config.search.items():
      assert low <= one.objective[name] <= high
  found = read(tmp_path)
  assert found['target_never_read'] == 'mnistm'
  assert len(found['trials']) == 2
  means = [trial['mean_accuracy'] for trial in found['trials']]
  assert found['mean_accuracy'] == best['mean_accuracy'] == max(means)
  assert set(found['accuracy']) == {'mnist', 'uci', 'synth'}


def test_a_search_cannot_read_the_target(tmp_path):
  """Really trains, where the target's file is not there at all."""
  domains = tiny.make_domains()
  for domain in (*domains.sources, domains.target):
    file = tmp_path / f'{domain.name}.npz'
    np.savez(file, images=domain.inputs, labels=domain.labels)
  values = 'steps=1,batch_size=8,method=source_only,network=tiny images'
  config = moda_jax.get_config(f'arrays:{tmp_path},target=t,{values}')
  config.search = {'learning_rate': (0.1, 1.0)}
  (tmp_path / 't.npz').unlink()
  with pytest.raises(UserError, match=r't\.npz'):
    train.train(config, tmp_path / 'run')
  best = search.search(config, 1, tmp_path / 'search')
  assert set(best['accuracy']) == {'a', 'b', 'c'}


def test_the_chosen_values_are_what_a_config_takes(trained, tmp_path):
  search.search(mini.get_config('mnistm'), 3, tmp_path)
  values = read(tmp_path)['values']
  assert set(values) == {'mu_d', 'mu_s', 'mu_c'}
  argument = f'mini:mnistm,values={tmp_path}/values.json'
  config = moda_jax.get_config(argument)
  assert {name: config.objective[name] for name in values} == values
  assert moda_jax.get_config(f'{argument},mu_s=0.4').objective.mu_s == 0.4
  with pytest.raises(UserError, match="'fm' does not read it"):
    moda_jax.get_config(f'{argument},method=fm')


@pytest.mark.parametrize('content', [None, '{"half', '[]', '{"values": 3}'])
def test_what_is_not_a_file_of_values_is_refused(tmp_path, content):
  path = tmp_path / 'values.json'
  if content is not None:
    path.write_text(content)
  with pytest.raises(UserError, match=r'mini\.py: .* must name a file with'):
    moda_jax.get_config(f'mini:mnistm,values={path}')


def test_the_length_is_among_the_values(trained, tmp_path):
  config = digits.get_config('mnistm')
  search.search(config, 4, tmp_path)
  lengths = {one.run.epochs for one in trained.configs}
  assert lengths <= {10, 20, 30, 40, 50, 60}
  assert len(lengths) > 1
  chosen = read(tmp_path)['values']
  argument = f'digits:mnistm,steps=5,values={tmp_path}/values.json'
  with pytest.raises(UserError, match='exactly one'):
    moda_jax.training.options.check(moda_jax.get_config(argument))
  config = moda_jax.get_config(argument.replace('steps=5,', ''))
  assert (config.run.epochs, config.run.steps) == (chosen['epochs'], 0)


def test_some_values_can_be_kept(trained, tmp_path):
  config = digits.get_config('mnistm,steps=9')
  search.search(config, 2, tmp_path, vary=['mu_c'])
  assert {one.run.steps for one in trained.configs} == {9}
  assert {one.objective.mu_s for one in trained.configs} == {0.2}
  assert len({one.objective.mu_c for one in trained.configs}) == 2
  with pytest.raises(UserError, match=r'--vary names mu_x; config\.search has'):
    search.search(config, 2, tmp_path, vary=['mu_x'])


def test_values_that_the_method_does_not_read_are_not_drawn():
  config = digits.get_config('mnistm,method=fm')
  assert set(ranges.find_ranges(config)) == {'mu_c', 'epochs'}


def test_with_two_sources_mu_s_is_kept(capsys):
  config = office31.get_config('webcam')
  assert set(ranges.find_ranges(config)) == {'mu_d', 'mu_c', 'epochs'}
  assert 'always 1: mu_s = 0.01 cannot be' in capsys.readouterr().out
  with pytest.raises(UserError, match=r'--vary names mu_s\. With two sources'):
    ranges.find_ranges(config, ['mu_c', 'mu_s'])
  ranges.find_ranges(office31.get_config('webcam,method=fm'))
  assert not capsys.readouterr().out


@pytest.mark.parametrize(
  ('name', 'limits', 'method'),
  [
    ('mu_s', (1e-3, 1.0), 'moda'),
    ('beta_rate', (0.1, 1.0), 'moda_fm'),
    ('alpha_hold', (10, 100), 'moda_fm'),
    ('alpha_floor', (0.1, 0.9), 'moda_fm_floored'),
    ('darn_gamma', (0.1, 1.0), 'moda_fm_darn'),
  ],
)
def test_with_two_sources_what_weighs_them_is_not_drawn(
  capsys, name, limits, method
):
  config = office31.get_config(f'webcam,method={method}')
  config.search = {name: limits, 'mu_d': (0.1, 1.0)}
  assert set(ranges.find_ranges(config)) == {'mu_d'}
  assert f'{name} = ' in capsys.readouterr().out
  config.data.datasets.synth = 'more'
  config.data.sources = (*config.data.sources, 'synth')
  assert set(ranges.find_ranges(config)) == {'mu_d', name}


def test_a_single_source_cannot_be_left_out(trained, tmp_path):
  config = mini.get_config('mnistm')
  config.data.sources = ('mnist',)
  with pytest.raises(UserError, match='leaves none to learn from'):
    search.search(config, 1, tmp_path)


def test_own_values_are_tried_without_drawing(trained, tmp_path):
  config = mini.get_config('mnistm')
  config.search = {}
  search.try_own_values(config, tmp_path)
  assert len(trained.configs) == 3
  own = config.objective.mu_s
  assert {one.objective.mu_s for one in trained.configs} == {own}
  found = json.loads((tmp_path / 'own_values.json').read_text())
  assert found['values'] == {}
  assert len(found['trials']) == 1


def test_own_values_leave_the_chosen_ones_alone(trained, tmp_path):
  config = mini.get_config('mnistm')
  search.search(config, 1, tmp_path)
  chosen = read(tmp_path)
  search.try_own_values(config, tmp_path)
  assert read(tmp_path) == chosen


def test_a_search_goes_on_with_what_is_missing(trained, tmp_path):
  config = mini.get_config('mnistm')
  search.search(config, 2, tmp_path / 'a')
  search.search(config, 3, tmp_path / 'a')
  assert len(trained.configs) == 9
  search.search(config, 3, tmp_path / 'b')
  assert read(tmp_path / 'a')['trials'] == read(tmp_path / 'b')['trials']


@pytest.mark.parametrize(
  'error', [Interrupted('stopped'), UserError('not prepared')]
)
def test_an_interrupted_trial_is_resumed(trained, tmp_path, error):
  config = mini.get_config('mnistm')
  trained.fail_at = {5: error}
  with pytest.raises(type(error)):
    search.search(config, 3, tmp_path / 'a')
  search.search(config, 3, tmp_path / 'a')
  assert trained.paths[4] == trained.paths[6]  # of the trial's second source
  trained.fail_at = {}
  search.search(config, 3, tmp_path / 'b')
  assert read(tmp_path / 'a')['trials'] == read(tmp_path / 'b')['trials']


def test_a_trial_that_diverges_is_not_chosen(trained, tmp_path):
  trained.fail_at = {2: NonFiniteError('Not finite at step 3')}
  search.search(mini.get_config('mnistm'), 3, tmp_path)
  assert len(trained.configs) == 2 + 3 + 3
  assert len(read(tmp_path)['trials']) == 2


def open_study(config, folder, name='s'):
  varied = ranges.find_ranges(config)
  storage = f'sqlite:///{folder}/search.db'
  return study.open_study(name, storage, config, varied, 0, False), varied


@pytest.mark.filterwarnings('ignore:Heartbeat of storage')
def test_what_a_dead_worker_was_at_is_done_again(trained, tmp_path):
  config = mini.get_config('mnistm')
  opened, varied = open_study(config, tmp_path)
  lost = opened.ask()
  lost.set_user_attr('worker', [socket.gethostname(), 2**30])
  elsewhere = opened.ask()
  elsewhere.set_user_attr('worker', ['another machine', 2**30])
  alive = opened.ask()
  alive.set_user_attr('worker', [socket.gethostname(), os.getpid()])
  study.work(opened, config, varied, 4, tmp_path)
  folders = [path.parent.name for path in trained.paths]
  assert folders == ['draw_0'] * 3 + ['draw_3'] * 3
  states = [trial.state.name for trial in opened.trials]
  assert states == ['FAIL', 'RUNNING', 'RUNNING', 'COMPLETE', 'COMPLETE']


@pytest.mark.filterwarnings('ignore:Heartbeat of storage')
def test_trials_under_way_elsewhere_are_counted(trained, tmp_path, capsys):
  config = mini.get_config('mnistm')
  other = open_study(config, tmp_path, 'mini digits, mnistm, moda_fm')[0].ask()
  other.set_user_attr('worker', ['another machine', 1])
  search.search(config, 3, tmp_path)
  assert 'under way in other processes: 1. The same' in capsys.readouterr().out
  assert len(read(tmp_path)['trials']) == 2
  other.study.tell(other, 0.99)
  best = search.search(config, 3, tmp_path)
  assert 'under way' not in capsys.readouterr().out
  assert best['mean_accuracy'] == 0.99


def test_a_study_of_another_config_is_refused(trained, tmp_path):
  search.search(mini.get_config('mnistm'), 1, tmp_path)
  with pytest.raises(UserError, match='another config, ranges or seed'):
    search.search(mini.get_config('mnistm,tau=0.5'), 1, tmp_path)
  with pytest.raises(UserError, match='another config, ranges or seed'):
    search.search(mini.get_config('mnistm'), 1, tmp_path, seed=1)
  search.search(mini.get_config('mnistm'), 1, tmp_path, seed=1, name='other')


@pytest.mark.slow
def test_pruning_is_off_by_default(trained, tmp_path):
  config = mini.get_config('mnistm')
  search.search(config, 8, tmp_path / 'all')
  assert len(trained.configs) == 24
  search.search(config, 8, tmp_path / 'some', prune=True)
  assert 24 < len(trained.configs) < 48


def test_a_storage_that_is_not_one_is_refused(trained, tmp_path):
  with pytest.raises(UserError, match='--storage=nowhere cannot be used'):
    search.search(mini.get_config('mnistm'), 1, tmp_path, storage='nowhere')


@pytest.mark.parametrize(
  'limits', [(0.0, 1.0), 0.5, (1.0,), (2.0, 1.0), ('a', 'b'), (None, 1.0)]
)
def test_a_range_that_cannot_be_drawn_from_is_refused(limits):
  config = mini.get_config('mnistm')
  config.search = {'mu_d': limits}
  with pytest.raises(UserError, match=r'config\.search\.mu_d'):
    ranges.find_ranges(config)


@pytest.mark.parametrize('choices', [(), 3, (1.5, 2.0)])
def test_choices_that_cannot_be_drawn_from_are_refused(choices):
  config = mini.get_config('mnistm')
  config.search = {'epochs': choices}
  with pytest.raises(UserError, match=r'config\.search\.epochs'):
    ranges.find_ranges(config)


@pytest.mark.parametrize('name', ['mu_x', 'method', 'sources'])
def test_what_cannot_be_drawn_is_refused(name):
  config = mini.get_config('mnistm')
  config.search = {name: (1.0, 8.0)}
  message = rf'config\.search\.{name} is not a value .*: .*mu_d, '
  with pytest.raises(UserError, match=message):
    ranges.find_ranges(config)


def test_a_search_of_nothing_is_refused():
  config = mini.get_config('mnistm')
  config.search = {}
  with pytest.raises(UserError, match=r'config\.search has nothing'):
    ranges.find_ranges(config)


def test_draws_are_log_uniform_and_repeatable():
  def draw(number):
    return ranges.draw_value((1e-4, 1.0), 0, number, 'mu_d')

  draws = [draw(number) for number in range(400)]
  assert draws[7] == draw(7)
  shares = np.histogram(np.log10(draws), 4, (-4, 0))[0]
  assert np.all(np.abs(shares - 100) < 40)
  lengths = [ranges.draw_value((10, 20), 0, i, 'epochs') for i in range(100)]
  assert 30 < lengths.count(10) < 70


@pytest.mark.filterwarnings('ignore:Heartbeat of storage')
def test_workers_draw_different_values(tmp_path):
  """Two workers that open the study by themselves share its draws."""
  config = mini.get_config('mnistm')
  workers = [open_study(config, tmp_path)[0] for _ in range(2)]
  trials = [worker.ask() for worker in workers * 2]
  values = {t.suggest_float('mu_d', 1e-4, 3e-2, log=True) for t in trials}
  assert len(values) == 4


@pytest.mark.parametrize('bad', [{'vary': ['mu_x']}, {'storage': 'nowhere'}])
def test_mistakes_are_found_before_workers_start(monkeypatch, tmp_path, bad):
  monkeypatch.setattr(search, 'search_in_processes', pytest.fail)
  with pytest.raises(UserError, match=f'--{next(iter(bad))}'):
    search.search(mini.get_config('mnistm'), 2, tmp_path, jobs=2, **bad)


@pytest.mark.parametrize('jobs', [['--jobs=2'], ['--jobs', '2']])
def test_each_worker_has_the_flags_and_a_single_job(
  monkeypatch, tmp_path, jobs
):
  started = []
  monkeypatch.setattr(runner, 'run_process', lambda c, *_: started.append(c))
  monkeypatch.setattr('sys.argv', ['search', *jobs, '--trials=3'])
  search.search_in_processes(2, tmp_path)
  wanted = ['experiments.search', *jobs, '--trials=3', '--jobs=1']
  assert started == [wanted] * 2


def test_a_worker_that_cannot_write_its_log_is_reported(tmp_path):
  (tmp_path / 'file').write_text('not a folder')
  with pytest.raises(UserError, match=r'worker 0 failed: .*Not a directory'):
    search.search_in_processes(1, tmp_path / 'file' / 'search')
