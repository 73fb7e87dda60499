"""The experiments' scripts: what they train, and what they leave alone."""

import importlib
import json
import pathlib
import re
import shlex
import shutil
import types

import numpy as np
import pytest

from configs import mini
from experiments import compare_methods, leave_one_source_out
from experiments.method_tables import format_results
from experiments.published import published
from moda_jax.errors import UserError
from moda_jax.objectives import METHODS
from moda_jax.training import loop as train

ROOT = pathlib.Path(__file__).parents[1]
TABLES = [
  path
  for path in sorted((ROOT / 'experiments' / 'results').glob('*.json'))
  if 'runs' in json.loads(path.read_text())
]


@pytest.fixture
def trained(monkeypatch):
  """Records configs in place of training, each with a made-up accuracy."""
  configs = []

  def pretend(config, path):
    del path
    configs.append(config)
    method = types.SimpleNamespace(caution='')
    experiment = types.SimpleNamespace(method=method)
    accuracy = 0.5 + config.run.seed / 10
    accuracy += (config.objective.method == 'fm') / 4
    return types.SimpleNamespace(accuracy=accuracy, experiment=experiment)

  monkeypatch.setattr(train, 'train', pretend)
  return configs


def compare(
  tmp_path,
  methods=('fm', 'moda'),
  seeds=2,
  argument='mnistm',
  targets=('mnistm', 'uci'),
):
  return compare_methods.compare(
    mini.get_config(argument),
    targets,
    methods,
    seeds,
    tmp_path / 'runs',
    tmp_path / 'made' / 'table',
  )


def test_every_target_method_and_seed_is_trained_once(trained, tmp_path):
  compare(tmp_path)
  keys = [(c.data.target, c.objective.method, c.run.seed) for c in trained]
  assert len(set(keys)) == len(keys) == 8
  for config in trained:
    assert set(config.data.sources) == set(mini.DATASETS) - {config.data.target}
  text = (tmp_path / 'made' / 'table.md').read_text()
  assert '| fm | 80.0 ± 7.1 |' in text  # of 0.75 and 0.85
  assert '| moda | 55.0 ± 7.1 |' in text


def test_what_the_table_has_is_not_trained_again(trained, tmp_path):
  compare(tmp_path, seeds=1)
  assert len(trained) == 4
  compare(tmp_path, seeds=2)
  assert [c.run.seed for c in trained[4:]] == [1] * 4
  compare(tmp_path, methods=('fm', 'moda', 'moe'), seeds=2)
  assert [c.objective.method for c in trained[8:]] == ['moe'] * 4
  found = json.loads((tmp_path / 'made' / 'table.json').read_text())
  assert found['runs']['uci']['fm']['1']['accuracy'] == 0.85


@pytest.mark.parametrize(
  ('values', 'named'),
  [
    ({'methods': ('fm', 'dan')}, "'dan'"),
    ({'methods': ()}, "--methods names 'nothing'"),
    ({'targets': ['mnistm', 'emnist']}, "--targets names 'emnist'; known"),
    ({'argument': 'mnistm,seeds=2'}, 'config.run.seeds = 2'),
    ({'argument': 'mnistm,seed=2'}, r'config.run.seed = 2'),
    ({'argument': 'mnistm,tau=0.5'}, 'another config'),
  ],
)
def test_what_cannot_be_compared_is_refused(trained, tmp_path, values, named):
  compare(tmp_path, seeds=1)
  before = len(trained)
  with pytest.raises(UserError, match=named):
    compare(tmp_path, **values)
  assert len(trained) == before


def test_other_sources_are_another_table(trained, tmp_path):
  compare(tmp_path, seeds=1)
  config = mini.get_config('mnistm')
  config.data.sources = ('mnist', 'uci')
  with pytest.raises(UserError, match='another config'):
    compare_methods.compare(
      config, ['mnistm'], ['fm'], 1, tmp_path, tmp_path / 'made' / 'table'
    )


@pytest.mark.parametrize('path', TABLES, ids=lambda path: path.stem)
def test_a_committed_table_is_what_its_command_goes_on_from(
  path, trained, tmp_path
):
  arguments = shlex.split(json.loads(path.read_text())['command'])[3:]
  values = dict(argument[2:].split('=', 1) for argument in arguments)
  assert ROOT / values['table'] == path.with_suffix('')
  file, argument = values['config'].split(':')
  config = importlib.import_module(
    file.removesuffix('.py').replace('/', '.')
  ).get_config(argument)
  table = tmp_path / path.stem
  shutil.copy(path, tmp_path)
  compare_methods.compare(
    config,
    values.get('targets', config.data.target).split(','),
    values.get('methods', ','.join(METHODS)).split(','),
    int(values.get('seeds', 3)),
    tmp_path,
    table,
  )
  assert not trained
  lines, again = (
    p.read_text().splitlines()[1:]
    for p in (path.with_suffix('.md'), table.with_suffix('.md'))
  )
  assert lines == again


def test_the_readme_has_the_committed_figures_of_reviews():
  table = ROOT / 'experiments' / 'results' / 'reviews_methods.md'
  rows = table.read_text().split('Target ')[0].splitlines()[6:]
  rows = [re.sub(r'^\| (\w+) ', r'| `\1` ', row) for row in rows if row]
  readme = (ROOT / 'README.md').read_text().splitlines()
  assert len(rows) == 9
  assert [row for row in rows if row not in readme] == []


def test_a_target_without_labels_gives_no_table(tmp_path, monkeypatch):
  outcome = types.SimpleNamespace(accuracy=None)
  monkeypatch.setattr(train, 'train', lambda config, path: outcome)
  with pytest.raises(UserError, match="labels of the target 'mnistm' are not"):
    compare(tmp_path)


@pytest.mark.parametrize('content', ['{"half', '[]', '{}'])
def test_a_file_that_is_no_table_is_refused_and_kept(
  trained, tmp_path, content
):
  (tmp_path / 'made').mkdir()
  (tmp_path / 'made' / 'table.json').write_text(content)
  with pytest.raises(UserError, match='is not a table'):
    compare(tmp_path)
  assert not trained
  assert (tmp_path / 'made' / 'table.json').read_text() == content


def test_a_search_never_reads_the_target(trained, tmp_path):
  config = mini.get_config('mnistm')
  leave_one_source_out.search(config, 2, 0, tmp_path)
  assert len(trained) == 6
  for one in trained:
    assert one.data.target in config.data.sources
    assert set(one.data.sources) == set(config.data.sources) - {one.data.target}
    for name, (low, high) in config.search.items():
      assert low <= one.objective[name] <= high
  found = json.loads((tmp_path / 'search.json').read_text())
  assert found['target_never_read'] == 'mnistm'
  assert len(found['trials']) == 2


@pytest.mark.parametrize(
  'limits', [(0.0, 1.0), 0.5, (1.0,), (2.0, 1.0), ('a', 'b'), (None, 1.0)]
)
def test_a_range_that_cannot_be_drawn_from_is_refused(
  trained, tmp_path, limits
):
  config = mini.get_config('mnistm')
  config.search = {'mu_d': limits}
  with pytest.raises(UserError, match=r'config\.search\.mu_d'):
    leave_one_source_out.search(config, 2, 0, tmp_path)
  assert not trained


@pytest.mark.parametrize('name', ['mu_x', 'batch_size', 'method'])
def test_a_search_of_what_cannot_be_drawn_is_refused(trained, tmp_path, name):
  config = mini.get_config('mnistm')
  config.search = {name: (1.0, 8.0)}
  message = rf'config\.search\.{name} is not a value .*: .*mu_d, '
  with pytest.raises(UserError, match=message):
    leave_one_source_out.search(config, 2, 0, tmp_path)
  assert not trained


def test_a_search_of_nothing_is_refused(trained, tmp_path):
  config = mini.get_config('mnistm')
  config.search = {}
  with pytest.raises(UserError, match=r'config\.search is empty'):
    leave_one_source_out.search(config, 2, 0, tmp_path)
  assert not trained


def test_draws_are_log_uniform_and_repeatable():
  search = mini.get_config('mnistm').search
  search.mu_d = (1e-4, 1.0)
  draws = [leave_one_source_out.draw_values(search, 0, i) for i in range(400)]
  assert draws[7] == leave_one_source_out.draw_values(search, 0, 7)
  shares = np.histogram(np.log10([d['mu_d'] for d in draws]), 4, (-4, 0))[0]
  assert np.all(np.abs(shares - 100) < 40)


def test_the_paper_s_figures_are_found():
  assert published('reviews', 'moda_fm', 'books') == (80.9, 1.1)
  assert published('office31', 'mada_ss', 'webcam') == (97.4, 0.1)
  assert published('reviews', 'mada_ss', 'books') is None
  assert published('mini digits', 'moda_fm', 'mnistm') is None


def test_ours_and_the_paper_s_stand_side_by_side():
  def make(*accuracies):
    return {
      str(seed): {'accuracy': accuracy, 'seconds': 9.0, 'caution': 'mind'}
      for seed, accuracy in enumerate(accuracies)
    }

  books = {'moda_fm': make(0.80, 0.82), 'mada': make(0.7), 'fm': make(0.6)}
  dvd = {'moda_fm': make(0.83), 'mada': make(0.8)}
  both, first, _ = format_results('reviews', {'books': books, 'dvd': dvd})
  assert '| method | books | dvd | mean |' in both
  assert '| moda_fm | 81.0 ± 1.4 (80.9) | 83.0 (82.0) | 82.0 (81.5) |' in both
  assert '| mada | 70.0 | 80.0 | 75.0 |' in both
  assert '| fm | 60.0 (78.8) |  (81.0) |  |' in both
  assert '| moda_fm | 81.0 ± 1.4 | 80.9 ± 1.1 | 2 | 9 | mind |' in first
  assert len(format_results('reviews', {'books': books})) == 1
