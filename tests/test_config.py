import math

import pytest
import tensorflow_datasets as tfds
import tiny

from configs import (
  digits,
  domainnet,
  mini,
  office31,
  office31_shrunk,
  reviews,
)
from moda_jax import config as config_lib
from moda_jax.errors import UserError


@pytest.mark.parametrize(
  'module', [digits, domainnet, mini, office31, office31_shrunk, reviews]
)
def test_every_target_has_the_other_domains_as_sources(module):
  for target in module.DATASETS:
    config = module.get_config(target)
    config_lib.check(config)
    assert config.target == target
    assert set(config.sources) == set(module.DATASETS) - {target}


def test_domainnet_is_that_of_tfds():
  known = tfds.builder_cls('domainnet').builder_configs
  assert {f'domainnet/{name}' for name in known} == set(
    domainnet.DATASETS.values()
  )


def test_arguments_are_typed():
  config = mini.get_config('mnist,method=moda,width=1,steps=7,weak_flip=true')
  assert (config.method, config.width, config.steps) == ('moda', 1.0, 7)
  assert type(config.width) is float
  assert config.weak_flip is True


@pytest.mark.parametrize(
  ('argument', 'named'),
  [
    ('emnist', ['emnist', 'mnist, uci, synth, mnistm']),
    ('', ["''", 'mnistm']),
    ('mnist,colour=3', ['colour=3', 'batch_size', 'tau']),
    ('mnist,moda', ["'moda'", 'key=value', 'method']),
    ('mnist,target=uci', ['target=uci']),
    ('mnist,sources=uci', ['sources=uci']),
    ('mnist,steps=1.5', ['steps=1.5', 'int']),
    ('mnist,tau=high', ['tau=high', 'float']),
    ('mnist,weak_flip=maybe', ['weak_flip=maybe', 'true or false']),
  ],
)
def test_wrong_arguments_are_refused_with_what_is_allowed(argument, named):
  with pytest.raises(UserError) as error:
    mini.get_config(argument)
  for text in ('configs/mini.py', *named):
    assert text in str(error.value)


@pytest.mark.parametrize(
  ('values', 'named'),
  [
    ({'mu_d': -0.1}, 'config.mu_d = -0.1'),
    ({'mu_s': math.inf}, 'config.mu_s = inf'),
    ({'mu_c': math.nan}, 'config.mu_c = nan'),
    ({'tau': 1.01}, 'config.tau = 1.01'),
    ({'tau': -0.01}, 'config.tau = -0.01'),
    ({'width': 0.0}, 'config.width = 0.0'),
    ({'learning_rate': -1.0}, 'config.learning_rate = -1.0'),
    ({'adadelta_rho': 1.0}, 'config.adadelta_rho = 1.0'),
    ({'batch_size': 0}, 'config.batch_size = 0'),
    ({'samples': -1}, 'config.samples = -1'),
    ({'steps': 0}, 'config.steps = 0'),
    ({'epochs': 3}, 'config.epochs = 3'),
    ({'weak': 'sometimes'}, "config.weak = 'sometimes'"),
    ({'cutout': 'middle'}, "config.cutout = 'middle'"),
    ({'weak_translation': math.nan}, 'config.weak_translation = nan'),
    ({'weak_translation': 1.5}, 'config.weak_translation = 1.5'),
    ({'weak_rotation': 181.0}, 'config.weak_rotation = 181.0'),
    ({'dropout_max': 1.0}, 'config.dropout_max = 1.0'),
    ({'frozen_stages': 4}, 'config.frozen_stages = 4'),
    ({'randaugment_max': 31}, 'config.randaugment_max = 31'),
    ({'randaugment_min': 11}, 'config.randaugment_min = 11'),
    ({'sources': ()}, 'config.sources = ()'),
    ({'sources': ('a', 'a')}, 'twice'),
    ({'sources': ('a', 't')}, "config.target = 't' is among"),
    ({'target': 'x'}, "'x'"),
  ],
)
def test_impossible_values_are_named(values, named):
  config = tiny.make_run_config(**values)
  with pytest.raises(UserError) as error:
    config_lib.check(config)
  assert named in str(error.value)


# From the paper's table of hyperparameters, its protocols and its views.
PAPER = {
  digits: {
    'learning_rate': 0.1,
    'batch_size': 8,
    'samples': 20_000,
    'mu_d': 1e-2,
    'mu_s': 0.2,
    'mu_c': 0.1,
    'epochs': 30,
    'weak_flip': False,
  },
  office31: {
    'learning_rate': 0.1,
    'batch_size': 8,
    'samples': 0,
    'test': 'target',
    'image_size': 256,
    'mu_d': 1e-2,
    'mu_s': 1e-2,
    'mu_c': 0.1,
    'epochs': 15,
    'weak_flip': True,
  },
  reviews: {
    'learning_rate': 1.0,
    'batch_size': 20,
    'samples': 2_000,
    'test': 'rest',
    'mu_d': 1e-2,
    'mu_s': 0.2,
    'mu_c': 0.1,
    'epochs': 15,
    'dropout_min': 0.2,
    'dropout_max': 0.8,
  },
}
COMMON = {
  'method': 'moda_fm',
  'tau': 0.9,
  'adadelta_rho': 0.9,
  'adadelta_eps': 1e-6,
  'randaugment_n': 2,
  'randaugment_min': 3,
  'randaugment_max': 10,
  'weak_rotation': 5.0,
  'weak_translation': 0.125,
}


@pytest.mark.parametrize('module', PAPER)
def test_the_paper_s_values(module):
  config = module.get_config()
  expected = COMMON | PAPER[module]
  assert {name: config[name] for name in expected} == expected


def test_limits_themselves_are_allowed():
  config_lib.check(tiny.make_run_config(mu_d=0.0, mu_s=0.0, mu_c=0.0, tau=0.0))
  config_lib.check(tiny.make_run_config(tau=1.0))
