"""The search of values: what it trains, and what it leaves alone."""

import json
import types

import numpy as np
import pytest

from configs import mini
from experiments import leave_one_source_out
from moda_jax.errors import UserError
from moda_jax.training import loop as train


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
