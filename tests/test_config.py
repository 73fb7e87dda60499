import math

import jax
import pytest
import tensorflow_datasets as tfds
import tiny

import moda_jax
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
from moda_jax.models import NETWORKS
from moda_jax.objectives import METHODS
from moda_jax.training import options
from moda_jax.training.optimizers import OPTIMIZERS


@pytest.mark.parametrize(
  'module', [digits, domainnet, mini, office31, office31_shrunk, reviews]
)
def test_every_target_has_the_other_domains_as_sources(module):
  for target in module.DATASETS:
    config = module.get_config(target)
    options.check(config)
    assert config.data.target == target
    assert set(config.data.sources) == set(module.DATASETS) - {target}


def test_domainnet_is_that_of_tfds():
  known = tfds.builder_cls('domainnet').builder_configs
  assert {f'domainnet/{name}' for name in known} == set(
    domainnet.DATASETS.values()
  )


def test_arguments_are_typed():
  config = mini.get_config('mnist,method=moda,width=1,steps=7,weak_flip=true')
  assert config.objective.method == 'moda'
  assert (config.network.width, config.run.steps) == (1.0, 7)
  assert type(config.network.width) is float
  assert config.views.weak_flip is True


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
    ({'mu_d': -0.1}, 'config.objective.mu_d = -0.1'),
    ({'mu_s': math.inf}, 'config.objective.mu_s = inf'),
    ({'mu_c': math.nan}, 'config.objective.mu_c = nan'),
    ({'tau': 1.01}, 'config.objective.tau = 1.01'),
    ({'tau': -0.01}, 'config.objective.tau = -0.01'),
    ({'network': 'digits', 'width': 0.0}, 'config.network.width = 0.0'),
    ({'learning_rate': -1.0}, 'config.optimizer.learning_rate = -1.0'),
    ({'rho': 1.0}, 'config.optimizer.rho = 1.0'),
    ({'batch_size': 0}, 'config.data.batch_size = 0'),
    ({'samples': -1}, 'config.data.samples = -1'),
    ({'steps': 0}, 'config.run.steps = 0'),
    ({'epochs': 3}, 'config.run.epochs = 3'),
    ({'weak_augment': 'sometimes'}, "config.views.weak_augment = 'some"),
    ({'cutout': 'middle'}, "config.views.cutout = 'middle'"),
    ({'weak_translation': math.nan}, 'config.views.weak_translation = nan'),
    ({'weak_translation': 1.5}, 'config.views.weak_translation = 1.5'),
    ({'weak_rotation': 181.0}, 'config.views.weak_rotation = 181.0'),
    (
      {'network': 'reviews', 'dropout_max': 1.0},
      'config.network.dropout_max = 1.0',
    ),
    (
      {'network': 'reviews', 'dropout_max': 0.1},
      'config.network.dropout_min = 0.2 is above',
    ),
    (
      {'network': 'resnet50', 'frozen_stages': 4},
      'config.network.frozen_stages = 4',
    ),
    ({'seed': 2**64}, 'config.run.seed = 18446744073709551616'),
    ({'steps': 2**70}, 'config.run.steps = '),
    ({'seed': 2**63 - 1, 'seeds': 2}, 'last seed must be below 2**63'),
    ({'randaugment_max': 31}, 'config.views.randaugment_max = 31'),
    ({'randaugment_min': 11}, 'config.views.randaugment_min = 11'),
    ({'sources': ()}, 'config.data.sources = ()'),
    ({'sources': ('a', 'a')}, 'twice'),
    ({'sources': ('a', 't')}, "config.data.target = 't' is among"),
    ({'target': 'x'}, "'x'"),
  ],
)
def test_impossible_values_are_named(values, named):
  config = tiny.make_run_config(**values)
  with pytest.raises(UserError) as error:
    options.check(config)
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
    'evaluate_on': 'target',
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
    'evaluate_on': 'undrawn',
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
  'rho': 0.9,
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
  for name, value in (COMMON | PAPER[module]).items():
    section, leaf = config_lib.full_name(config, name).split('.')
    assert config[section][leaf] == value, name


def test_limits_themselves_are_allowed():
  options.check(tiny.make_run_config(mu_d=0.0, mu_s=0.0, mu_c=0.0, tau=0.0))
  options.check(tiny.make_run_config(tau=1.0))


def test_a_leaf_name_needs_no_section_and_may_have_it():
  config = mini.get_config('mnistm,objective.mu_s=0.4,optimizer=sgd,momentum=0')
  assert config.objective.mu_s == 0.4
  assert (config.optimizer.name, config.optimizer.momentum) == ('sgd', 0.0)


@pytest.mark.parametrize(
  ('argument', 'named'),
  [
    ('mnist,method=fm,mu_s=0.4', ['objective.mu_s', "'fm'", 'mu_c, tau']),
    ('mnist,method=source_only,tau=0.4', ['objective.tau', 'no values']),
    ('mnist,method=fm,beta_rate=1', ['beta_rate = 1.0', "'fm'", 'weights β']),
    (
      'mnist,method=moda_fm_projected,beta_rate=1',
      ["'moda_fm_projected' does not read it"],
    ),
    ('mnist,momentum=0.5', ['optimizer.momentum', "'adadelta'", 'rho']),
    (
      'mnist,weights=uniform,target_term=none,tau=0.5',
      ['objective.tau', "'moda_fm,weights=uniform,target_term=none'", 'mu_d'],
    ),
    (
      'mnist,weights=uniform,beta_rate=0.2',
      ['beta_rate', "'moda_fm,weights=uniform'", 'no source weights'],
    ),
    ('mnist,weights=darn,alpha_floor=0.2', ['alpha_floor', 'alpha_hold']),
    ('mnist,weights=darn,mu_s=0.4', ['objective.mu_s', 'darn_gamma']),
    ('mnist,dropout_min=0.1', ['network.dropout_min', "'digits'", 'width']),
    ('mnist,method=moda,cutout=last', ['views.cutout', "'moda' has no strong"]),
    ('mnist,method=moda,weak_rotation=3', ['as they are; weak_augment=']),
    ('mnist,weak_augment=never,weak_rotation=3', ["'never' leaves both out"]),
    ('mnist,learned_decay=0.5', ["strong='randaugment' learns nothing"]),
    ('mnist,strong=learned,randaugment_max=9', ['learns the magnitudes']),
    ('mnist,network=mlp,randaugment_n=1', ["strong view of network='mlp'"]),
  ],
)
def test_a_value_that_is_not_read_is_refused(argument, named):
  with pytest.raises(UserError) as error:
    mini.get_config(argument)
  for text in named:
    assert text in str(error.value)


def test_a_value_of_the_views_that_is_read_is_taken():
  views = mini.get_config(
    'mnist,method=moda,weak_augment=always,weak_rotation=3'
  ).views
  assert views.weak_rotation == 3
  views = mini.get_config('mnist,strong=learned,learned_decay=0.5').views
  assert views.learned_decay == 0.5


def test_a_config_may_set_the_rate_of_beta_for_all_methods():
  assert mini.get_config('mnist,method=fm').optimizer.beta_rate == 0.1
  assert mini.get_config('mnist,beta_rate=1').optimizer.beta_rate == 1.0


@pytest.mark.parametrize('name', METHODS)
def test_methods_say_whether_they_have_beta(name):
  method, batch = tiny.make_method(name), tiny.make_batch()
  params, _ = jax.eval_shape(
    method.init, jax.random.key(0), batch['target']['weak']
  )
  assert ('beta' in params) == METHODS[name].has_beta()


def test_configs_are_found_by_name():
  config = moda_jax.get_config('digits:mnistm,method=moda')
  assert config.objective.method == 'moda'
  assert moda_jax.get_config('reviews').data.target == 'books'
  with pytest.raises(UserError, match=r"no config 'digit'; there are .*digits"):
    moda_jax.get_config('digit:mnistm')


def test_a_pruned_config_has_what_its_choices_read():
  config = options.prune(mini.get_config('mnistm,method=fm'))
  assert set(config.objective) == {'method', 'mu_c', 'tau'}
  assert set(config.network) == {'name', 'width', 'init'}
  assert 'momentum' not in config.optimizer
  composed = mini.get_config('mnistm,method=fm,target_term=entropy')
  composed = options.prune(composed).objective
  assert set(composed) == {'method', 'target_term', 'entropy_weight'}
  options.check(config)


@pytest.mark.parametrize(
  'kinds',
  [
    NETWORKS.values(),
    OPTIMIZERS.values(),
    [method.Options for method in METHODS.values()],
  ],
  ids=['networks', 'optimizers', 'methods'],
)
def test_an_option_of_several_kinds_has_one_default(kinds):
  """A config holds the options of all kinds, and each by its name once."""
  found = {}
  for kind in kinds:
    for name, value in config_lib.defaults(kind).items():
      found.setdefault(name, set()).add(value)
  assert {name for name, values in found.items() if len(values) > 1} == set()
