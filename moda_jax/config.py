"""Configs: the values every experiment has, their arguments, their checks.

A file in `configs/` starts from `base_config`, sets what its experiment is,
and hands the argument after its colon to `apply_argument`.
"""

import math
from collections.abc import Iterable

import ml_collections

from moda_jax.errors import UserError

_BOOLEANS = {'true': True, 'false': False}
_CHOICES = {
  'weak': ('auto', 'always', 'never'),
  'cutout': ('first', 'last'),
  'test': ('split', 'target', 'rest'),
  'features': ('counts', 'tfidf'),
  'dtype': ('float32', 'bfloat16'),
  'init': ('torch', 'he', 'lecun'),
}


def base_config() -> ml_collections.ConfigDict:
  """Returns every value with its default; an experiment overrides some."""
  return ml_collections.ConfigDict(
    {
      'experiment': '',
      'method': 'moda_fm',
      'seed': 0,
      'seeds': 1,  # how many train side by side, from `seed` on
      # Domains. `datasets` gives the TFDS names that may serve a domain,
      # separated by commas: the first one that is prepared is taken.
      'sources': (),
      'target': '',
      'datasets': {},
      'data_dir': '',  # TFDS's own default when empty
      'samples': 0,  # random training examples a domain; 0 takes all
      'test': 'split',  # or 'target', or its 'rest', see data/load.py
      'image_size': 0,  # images are brought to it; 0 takes them as they are
      'features': 'counts',  # of words; or 'tfidf'
      # Networks. What follows the width is of resnet50 alone.
      'network': '',
      'width': 1.0,
      'init': 'torch',  # or 'he', 'lecun', see models/layers.py
      'pretrained': '',  # a file that moda_jax.models.pretrained wrote
      'dtype': 'float32',  # what layers compute in; or 'bfloat16'
      'remat': False,  # less memory for more time
      'frozen_stages': 0,  # of the first three: kept as they are
      # Objective.
      'mu_d': 1e-2,
      'mu_s': 0.2,
      'mu_c': 0.1,
      'tau': 0.9,
      'alpha_hold': 0,  # steps that the source weights are held equal for
      'alpha_floor': 0.3,  # moda_fm_floored: ε of (1 − ε) α + ε / M
      'alpha_decay': 0.99,  # of the losses that weights are solved for on
      'darn_gamma': 0.5,  # moda_fm_darn: one-hot at a lead of 1 / γ
      'gamma': 10.0,  # MDAN's sharpness
      'moe_weight': 0.8,  # of the mixture's losses; the experts have the rest
      'moe_alignment': 0.0,
      'moe_entropy': 0.1,
      'moe_rank': 50,
      'm3sda_weight': 5e-4,
      # Ranges that a search draws from, log-uniformly.
      'search': {},
      # Views. The weak one shifts and rotates for methods with a strong one,
      # as in the paper ('auto'), or for all ('always') or none ('never').
      'weak': 'auto',
      'weak_rotation': 5.0,
      'weak_translation': 0.125,
      'weak_flip': False,
      'randaugment_n': 2,
      'randaugment_min': 3,
      'randaugment_max': 10,
      'randaugment_exclude': (),
      'cutout': 'first',
      'dropout_min': 0.2,  # the strong view of features that are no images
      'dropout_max': 0.8,
      # Optimisation: AdaDelta. The first pattern found in a parameter's path
      # gives the multiple of the learning rate that it moves by.
      'batch_size': 8,  # a domain
      'epochs': 0,  # of the largest domain
      'steps': 0,  # instead of epochs
      'learning_rate': 0.1,
      'adadelta_rho': 0.9,
      'adadelta_eps': 1e-6,
      'rate_multipliers': (('.*', 1.0),),
      'beta_rate': 1.0,  # the multiple for the source weights β
      # The run.
      'log_every': 100,
      'eval_every': 1000,
      'checkpoint_every': 1000,
      'eval_batch_size': 500,
    }
  )


def split_seeds(
  config: ml_collections.ConfigDict,
) -> list[ml_collections.ConfigDict]:
  """Returns the configs of the single runs that `config.seeds` stands for."""
  configs = []
  for seed in range(config.seed, config.seed + config.seeds):
    single = config.copy_and_resolve_references()
    single.seed, single.seeds = seed, 1
    configs.append(single)
  return configs


def apply_argument(
  config: ml_collections.ConfigDict,
  argument: str,
  targets: Iterable[str],
  where: str,
) -> ml_collections.ConfigDict:
  """Sets target, sources and further values from `target[,key=value…]`.

  Args:
    config: changed in place and returned.
    argument: what follows the colon in `--config=configs/digits.py:…`.
    targets: the experiment's domains; those that are not the target become
      the sources, in this order.
    where: the config's name in messages.
  """
  targets = tuple(targets)
  target, *pairs = argument.split(',')
  if target not in targets:
    raise UserError(
      f"{where}: unknown target '{target}'; allowed are {', '.join(targets)}."
    )
  config.target = target
  config.sources = tuple(name for name in targets if name != target)
  for pair in pairs:
    key, equals, text = pair.partition('=')
    _check_key(config, key, bool(equals), pair, where)
    config[key] = _parse(text, config[key], f"{where}: '{pair}'")
  choose_length(config, [pair.partition('=')[0] for pair in pairs])
  return config


def choose_length(
  config: ml_collections.ConfigDict, given: Iterable[str]
) -> None:
  """Lets `steps` replace the config's `epochs`, or they its steps."""
  length = {'steps', 'epochs'}
  chosen = length & set(given)
  if len(chosen) == 1:
    (replaced,) = length - chosen
    config[replaced] = 0


def _check_key(
  config: ml_collections.ConfigDict,
  key: str,
  has_value: bool,
  pair: str,
  where: str,
) -> None:
  allowed = sorted(
    name
    for name, value in config.items()
    if isinstance(value, int | float | str) and name != 'target'
  )
  if not has_value or key not in allowed:
    raise UserError(
      f"{where}: unknown argument '{pair}'; after the target stand "
      f'key=value pairs separated by commas, with a key of '
      f'{", ".join(allowed)}.'
    )


def _parse(text: str, default: int | float | str, where: str) -> object:
  kind = type(default)
  if kind is bool and text.lower() in _BOOLEANS:
    return _BOOLEANS[text.lower()]
  try:
    if kind is bool:
      raise ValueError
    return kind(text)
  except ValueError:
    name = 'true or false' if kind is bool else f'of type {kind.__name__}'
    raise UserError(f"{where}: '{text}' is not {name}.") from None


def check(config: ml_collections.ConfigDict) -> None:
  """Refuses values that no run can start from, naming value and range."""
  _check_numbers(config)
  if (config.epochs > 0) == (config.steps > 0):
    raise UserError(
      f'config.epochs = {config.epochs} and config.steps = {config.steps}: '
      'exactly one of them must be above 0.'
    )
  for name, choices in _CHOICES.items():
    allowed = f'one of {", ".join(choices)}'
    _require(config[name] in choices, config, name, allowed)
  in_range = 0 <= config.frozen_stages <= 3
  _require(in_range, config, 'frozen_stages', 'from 0 to 3')
  _check_views(config)
  _check_domains(config)


def _check_numbers(config: ml_collections.ConfigDict) -> None:
  for name in (
    'mu_d',
    'mu_s',
    'mu_c',
    'moe_alignment',
    'moe_entropy',
    'm3sda_weight',
    'beta_rate',
  ):
    _require(
      math.isfinite(config[name]) and config[name] >= 0,
      config,
      name,
      'a finite number, 0 or more',
    )
  for name in ('tau', 'moe_weight', 'alpha_floor'):
    _require(0 <= config[name] <= 1, config, name, 'within [0, 1]')
  for name in ('adadelta_rho', 'alpha_decay'):
    _require(0 <= config[name] < 1, config, name, 'in [0, 1)')
  for name in (
    'width',
    'gamma',
    'darn_gamma',
    'learning_rate',
    'adadelta_eps',
  ):
    positive = math.isfinite(config[name]) and config[name] > 0
    _require(positive, config, name, 'a finite number above 0')
  for name in (
    'seeds',
    'batch_size',
    'moe_rank',
    'log_every',
    'eval_every',
    'checkpoint_every',
    'eval_batch_size',
  ):
    _require(config[name] >= 1, config, name, '1 or more')
  for name in (
    'samples',
    'epochs',
    'steps',
    'seed',
    'image_size',
    'alpha_hold',
  ):
    _require(config[name] >= 0, config, name, '0 or more')


def _check_views(config: ml_collections.ConfigDict) -> None:
  for name, most in (('weak_rotation', 180), ('weak_translation', 1)):
    in_range = 0 <= config[name] <= most
    _require(in_range, config, name, f'within [0, {most}]')
  if not 0 <= config.dropout_min <= config.dropout_max < 1:
    raise UserError(
      f'config.dropout_min = {config.dropout_min} and config.dropout_max = '
      f'{config.dropout_max}: rates must satisfy 0 <= min <= max < 1.'
    )
  _require(config.randaugment_n >= 1, config, 'randaugment_n', '1 or more')
  if not 0 <= config.randaugment_min <= config.randaugment_max <= 30:
    raise UserError(
      f'config.randaugment_min = {config.randaugment_min} and '
      f'config.randaugment_max = {config.randaugment_max}: magnitudes must '
      'satisfy 0 <= min <= max <= 30.'
    )


def _check_domains(config: ml_collections.ConfigDict) -> None:
  known = ', '.join(sorted(config.datasets))
  _require(len(config.sources) > 0, config, 'sources', 'at least one domain')
  if len(set(config.sources)) < len(config.sources):
    raise UserError(f'config.sources = {config.sources} names a domain twice.')
  if config.target in config.sources:
    raise UserError(
      f"config.target = '{config.target}' is among config.sources = "
      f'{config.sources}; the target must be another domain.'
    )
  for name in (*config.sources, config.target):
    if name not in config.datasets:
      raise UserError(
        f"config names the domain '{name}', which config.datasets does not "
        f'have; it has {known}.'
      )


def _require(
  holds: bool, config: ml_collections.ConfigDict, name: str, allowed: str
) -> None:
  if not holds:
    raise UserError(
      f'config.{name} = {config[name]!r} is not allowed; it must be {allowed}.'
    )
