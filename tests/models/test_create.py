"""Networks as a config describes them, and the weights that they start from."""

import re

import jax
import numpy as np
import pytest
import tiny
from weight_writers import WRITERS

import moda_jax
from configs import office31
from moda_jax.errors import UserError
from moda_jax.models import NETWORKS, resnet
from moda_jax.models import published_weights as pretrained
from moda_jax.objectives import METHODS
from moda_jax.training import loop as train
from moda_jax.training.experiment import Experiment
from moda_jax.training.optimizers import rate_multipliers
from moda_jax.training.options import check

WIDTH = 1 / 32  # of the made-up weights


@pytest.fixture(scope='module')
def weights_path(tmp_path_factory):
  place = tmp_path_factory.mktemp('weights')
  pretrained.convert_file(WRITERS['h5 weights'](place), place / 'out.npz')
  return place / 'out.npz'


def make_config(**values):
  return tiny.make_run_config(network='resnet50', width=WIDTH, **values)


@pytest.mark.slow
def test_an_experiment_starts_from_the_weights(weights_path):
  config = make_config(pretrained=str(weights_path), method='moda')
  experiment = Experiment(config, tiny.make_domains(), devices=1)
  weights = pretrained.load_pretrained(weights_path)
  state = experiment.initial_state
  assert weights.variant == 'v1'
  for part in ('classifier', 'discriminator'):
    jax.tree.map(
      np.testing.assert_array_equal,
      (
        state.params[part]['stage4'],
        state.method_state[part]['batch_stats']['stage4'],
      ),
      (weights.params['stage4'], weights.batch_stats['stage4']),
    )
  jax.tree.map(
    np.testing.assert_array_equal,
    (
      state.params['extractor'],
      state.method_state['extractor']['batch_stats'],
    ),
    (weights.params['extractor'], weights.batch_stats['extractor']),
  )


@pytest.mark.slow
def test_a_run_belongs_to_its_weights(weights_path, tmp_path, monkeypatch):
  monkeypatch.setattr(resnet, 'BLOCKS', (1, 1, 1, 1))  # quick to compile
  monkeypatch.setattr(pretrained, '_check_shapes', lambda *_: None)
  monkeypatch.setattr(
    'moda_jax.training.train_step.insert_weights', lambda _, *trees: trees
  )
  config = make_config(pretrained=str(tmp_path / 'w.npz'), method='source_only')
  config.run.steps = 1
  with np.load(weights_path) as file:
    arrays = dict(file)
  np.savez(tmp_path / 'w.npz', **arrays)
  train.train(config, tmp_path / 'run', tiny.make_domains(), devices=1)
  name = 'params/extractor/norm_stem/bias'
  changes = {'variant': np.array('v1_old')}, {name: arrays[name] + 1}
  for change, now in zip(changes, ('v1_old', 'v1'), strict=True):
    np.savez(tmp_path / 'w.npz', **arrays | change)
    with pytest.raises(UserError, match=rf"'v1, SHA.*there.*'{now}, SHA.*now"):
      train.train(config, tmp_path / 'run', tiny.make_domains(), devices=1)


def test_options_reach_the_network(weights_path):
  options = NETWORKS['resnet50'](
    pretrained=str(weights_path), dtype='bfloat16', remat=True, frozen_stages=2
  )
  networks = options.create(3, 'devices')
  design = networks.extractor.design
  assert (design.dtype, design.remat) == ('bfloat16', True)
  assert (design.frozen_stages, design.axis_name) == (2, 'devices')
  assert design.variant.bgr
  known = options.create(3, 'devices', variant='torchvision')
  assert known.weights is None
  assert not known.extractor.design.variant.bgr


@pytest.mark.parametrize(
  ('values', 'message'),
  [
    ({'name': 'vgg'}, "config.network.name = 'vgg' is unknown; allowed are"),
    ({'width': 0.0}, 'config.network.width = 0.0 is not allowed'),
    ({'dtype': 'int8'}, "config.network.dtype = 'int8' is not allowed"),
    ({'frozen_stages': 4}, 'config.network.frozen_stages = 4 is not'),
    (
      {'pretrained': 'gone.npz'},
      "config.network.pretrained = 'gone.npz' is not there",
    ),
    ({'frozen_stages': 1}, 'config.network.frozen_stages = 1 without'),
  ],
)
def test_bad_values_are_refused(values, message):
  config = make_config()
  config.network.update(values)
  with pytest.raises(UserError, match=re.escape(message)):
    check(config).network.create(3)


@pytest.mark.parametrize(
  ('network', 'value'),
  [
    ('digits', 'remat=true'),
    ('reviews', 'dtype=bfloat16'),
    ('digits', 'pretrained=x'),
  ],
)
def test_a_value_that_the_network_does_not_read_is_refused(network, value):
  name = value.partition('=')[0]
  message = rf"config\.network\.{name} = .*: '{network}' does not .* width"
  with pytest.raises(UserError, match=message):
    moda_jax.get_config(f'mini:mnistm,network={network},{value}')


@pytest.mark.parametrize(
  ('network', 'domains', 'message'),
  [
    ('digits', tiny.make_sparse_domains, "'digits' takes images; the target"),
    ('resnet50', tiny.make_sparse_domains, "'t' has rows of features"),
    ('reviews', tiny.make_domains, "'reviews' takes rows of features; the"),
  ],
)
def test_a_network_for_other_inputs_is_refused(network, domains, message):
  config = tiny.make_run_config(network=network)
  with pytest.raises(UserError, match=message):
    Experiment(config, domains(), devices=1)


@pytest.mark.parametrize('name', tiny.EVERY_METHOD)
def test_pretrained_layers_move_at_a_tenth_of_the_rate(name):
  """New layers, β and metrics at the full one; BatchNorm is not new."""
  networks = resnet.create_networks(5, WIDTH)
  method = METHODS[name](networks, ('a', 'b'), tiny.make_options(name))
  params, _ = jax.eval_shape(
    method.init, jax.random.key(0), np.zeros((1, 32, 32, 3), np.float32)
  )
  patterns = office31.office31_config().optimizer.rate_multipliers
  rates = {
    jax.tree_util.keystr(path, simple=True, separator='/'): rate
    for path, rate in jax.tree.leaves_with_path(
      rate_multipliers(patterns, params)
    )
  }
  for path, rate in rates.items():
    is_pretrained = re.search('(^extractor|/stage4)/', path) is not None
    assert rate == (0.1 if is_pretrained else 1.0), path
  assert rates['extractor/stage1/block0/norm0/scale'] == 0.1
  assert rates['classifier/Dense_0/bias'] == 1.0
