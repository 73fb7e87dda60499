"""What a search varies: checked ranges and choices of a config's values."""

import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import ml_collections
import numpy as np

from moda_jax import config as config_lib
from moda_jax.errors import UserError
from moda_jax.training import options

Ranges = dict[
  str, tuple
]  # by name: two floats, or whole numbers to choose from


# What shapes the weights of the sources, and means nothing with one source.
_WEIGHING = (
  'mu_s',
  'beta_rate',
  'alpha_hold',
  'alpha_floor',
  'alpha_decay',
  'darn_gamma',
)


def find_ranges(
  config: ml_collections.ConfigDict, vary: Sequence[str] = ()
) -> Ranges:
  """Returns what `config.search` gives for the values that the method reads.

  Args:
    config: the experiment.
    vary: the names to vary; all by default.
  """
  kept = _find_kept(config, vary)
  unknown = sorted(set(vary) - set(config.search))
  if unknown:
    raise UserError(
      f'--vary names {", ".join(unknown)}; config.search has '
      f'{", ".join(config.search)}.'
    )
  read = options.prune(config)
  found: Ranges = {}
  for name, limits in config.search.items():
    _check(config, name, limits)
    is_read = config_lib.full_name(read, name) is not None
    if is_read and name not in kept and (not vary or name in vary):
      found[name] = tuple(limits)
  if not found:
    raise UserError(
      'config.search has nothing that can be varied here. --trials=0 tries the '
      "config's own values."
    )
  return found


def _find_kept(
  config: ml_collections.ConfigDict, vary: Sequence[str]
) -> list[str]:
  """Returns what cannot be chosen by leaving one of two sources out; says so.

  Args:
    config: the experiment.
    vary: the names that are asked for; none of these may be among them.
  """
  if len(config.data.sources) != 2:
    return []
  read = options.prune(config)
  values = {}
  for name in _WEIGHING:
    full = config_lib.full_name(read, name)
    if full is not None and name in ('mu_s', *config.search, *vary):
      values[name] = _get(read, full)
  if not values:
    return []
  note = (
    'With two sources, leaving one out leaves one, whose weight is always 1: '
    f'{", ".join(f"{name} = {value}" for name, value in values.items())} '
    'cannot be chosen and is kept.'
  )
  asked = [name for name in values if name in vary]
  if asked:
    raise UserError(f'--vary names {", ".join(asked)}. {note}')
  print(note)
  return list(values)


def _check(
  config: ml_collections.ConfigDict, name: str, limits: object
) -> None:
  kinds = {
    leaf.partition('.')[2]: type(_get(config, leaf))
    for leaf in config_lib.leaves(config)
  }
  varied = sorted(n for n, kind in kinds.items() if kind in (int, float))
  if name not in varied:
    raise UserError(
      f'config.search.{name} is not a value that can be drawn; these can: '
      f'{", ".join(varied)}.'
    )
  if kinds[name] is float and not _is_range(limits):
    raise UserError(
      f'config.search.{name} = {limits!r} must be the two ends of a range of '
      'numbers above 0, such as (0.01, 1.0).'
    )
  if kinds[name] is int and not _is_choice(limits):
    raise UserError(
      f'config.search.{name} = {limits!r} must be whole numbers to choose '
      'from, such as (10, 20, 30).'
    )


def _get(config: Mapping[str, Any], name: str) -> object:
  section, leaf = name.split('.')
  return config[section][leaf]


def _is_range(limits: object) -> bool:
  if not isinstance(limits, tuple | list) or len(limits) != 2:
    return False
  are_numbers = all(isinstance(limit, int | float) for limit in limits)
  return are_numbers and 0 < limits[0] <= limits[1] < math.inf


def _is_choice(limits: object) -> bool:
  if not isinstance(limits, tuple | list) or not limits:
    return False
  return all(type(limit) is int for limit in limits)


def is_choice(limits: tuple) -> bool:
  """Returns whether values are chosen from a list, not drawn from a range."""
  return _is_choice(limits)


def draw_value(limits: tuple, seed: int, draw: int, name: str) -> float:
  """Draws one value: log-uniformly to three digits, or one of the choices.

  The same seed, draw and name give the same value, whoever draws it and
  whatever was drawn before.
  """
  rng = np.random.default_rng([seed, draw, zlib.crc32(name.encode())])
  if is_choice(limits):
    return limits[rng.integers(len(limits))]
  low, high = limits
  value = math.exp(rng.uniform(math.log(low), math.log(high)))
  return min(max(float(f'{value:.3g}'), low), high)
