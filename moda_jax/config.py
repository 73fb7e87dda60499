"""Configs: options that layers declare, and arguments that set them.

A layer declares what it reads as a dataclass whose fields are made by `option`,
with a default and the values allowed. A config is a `ConfigDict` of sections
(`data`, `views`, `network`, `objective`, `optimizer`, `run`); each section is
checked by the layer that reads it, through `read_section`.
"""

import dataclasses
import difflib
import importlib.util
import math
import os
import pathlib
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import ml_collections

from moda_jax.errors import UserError

if TYPE_CHECKING:
  from _typeshed import DataclassInstance

SECTIONS = ('data', 'views', 'network', 'objective', 'optimizer', 'run')
# What a section's name sets where it is used as a leaf: `network=digits`.
_CHOSEN = {
  'network': 'network.name',
  'optimizer': 'optimizer.name',
  'method': 'objective.method',
}
_BOOLEANS = {'true': True, 'false': False}
Options = TypeVar('Options', bound='DataclassInstance')


def option(
  default: Any,
  *,
  least: float | None = None,
  above: float | None = None,
  most: float | None = None,
  below: float | None = None,
  choices: tuple[str, ...] | None = None,
) -> Any:
  """Declares a field of an options dataclass, with the values allowed."""
  limits = {'least': least, 'above': above, 'most': most, 'below': below}
  metadata = {'limits': limits, 'choices': choices}
  return dataclasses.field(default=default, metadata=metadata)


def defaults(*kinds: type) -> dict[str, Any]:
  """Returns the options that any of the dataclasses declares, with defaults.

  The first one that declares an option gives its default.
  """
  found: dict[str, Any] = {}
  for kind in kinds:
    for field in dataclasses.fields(kind):
      found.setdefault(field.name, field.default)
  return found


def read_section(
  kind: type[Options], values: Mapping[str, Any], section: str
) -> Options:
  """Returns the section's values as the dataclass, checked.

  What the dataclass does not declare is not looked at.

  Raises:
    UserError: a value that is not allowed; names it, its place and the rest.
  """
  read = {}
  for field in dataclasses.fields(kind):
    value = values.get(field.name, field.default)
    where = f'config.{section}.{field.name}'
    read[field.name] = _check_value(value, field, where)
  return kind(**read)


def _check_value(value: Any, field: dataclasses.Field, where: str) -> Any:
  kind = type(field.default)
  if kind is float and type(value) is int:
    value = float(value)
  if kind in (bool, int, float, str) and type(value) is not kind:
    raise not_allowed(where, value, f'of type {kind.__name__}')
  choices = field.metadata.get('choices')
  if choices and value not in choices:
    named = ', '.join(choice or "''" for choice in choices)
    raise not_allowed(where, value, f'one of {named}')
  limits = field.metadata.get('limits', {})
  if kind in (int, float) and not _within(value, **limits):
    raise not_allowed(where, value, _describe_limits(**limits))
  return value


def _within(
  value: float,
  least: float | None,
  above: float | None,
  most: float | None,
  below: float | None,
) -> bool:
  return (
    math.isfinite(value)
    and abs(value) < 2**63
    and (least is None or value >= least)
    and (above is None or value > above)
    and (most is None or value <= most)
    and (below is None or value < below)
  )


def _describe_limits(
  least: float | None,
  above: float | None,
  most: float | None,
  below: float | None,
) -> str:
  parts = []
  if least is not None:
    parts.append(f'{least} or more')
  if above is not None:
    parts.append(f'above {above}')
  if most is not None:
    parts.append(f'at most {most}')
  if below is not None:
    parts.append(f'below {below}')
  return ', '.join(['a finite number', *parts])


def not_allowed(where: str, value: Any, allowed: str) -> UserError:
  """Returns the error for a value that the config may not have."""
  return UserError(f'{where} = {value!r} is not allowed; it must be {allowed}.')


def check_names(where: str, value: Any) -> None:
  """Refuses what is not a tuple or list of strings."""
  is_list = isinstance(value, tuple | list)
  if not is_list or not all(isinstance(name, str) for name in value):
    raise not_allowed(where, value, 'a tuple of strings')


def leaves(config: Mapping[str, Any]) -> Iterator[str]:
  """Yields the full name of every value in the sections: `run.seed`."""
  for section in SECTIONS:
    for name in config[section]:
      yield f'{section}.{name}'


def full_name(config: Mapping[str, Any], name: str) -> str | None:
  """Returns the one leaf that a short or full name means, if there is one.

  `method`, `network` and `optimizer` mean the names chosen in their sections.
  """
  if name in _CHOSEN:
    return _CHOSEN[name]
  known = list(leaves(config))
  if name in known:
    return name
  found = [leaf for leaf in known if leaf.partition('.')[2] == name]
  return found[0] if len(found) == 1 else None


def set_argument(
  config: ml_collections.ConfigDict, pair: str, where: str
) -> str:
  """Sets `key=value` from a command line; returns the key's full name."""
  key, equals, text = pair.partition('=')
  name = full_name(config, key)
  if not equals or name is None or not _is_plain(config, name):
    raise _unknown_argument(config, pair, where)
  section, leaf = name.split('.')
  default = config[section][leaf]
  config[section][leaf] = _parse(text, default, f"{where}: '{pair}'")
  return name


def _is_plain(config: Mapping[str, Any], name: str) -> bool:
  section, leaf = name.split('.')
  is_domain = name in ('data.target', 'data.sources')
  return isinstance(config[section][leaf], int | float | str) and not is_domain


def _unknown_argument(
  config: Mapping[str, Any], pair: str, where: str
) -> UserError:
  allowed = sorted(
    {_short(config, n) for n in leaves(config) if _is_plain(config, n)}
    | set(_CHOSEN)
  )
  near = difflib.get_close_matches(pair.partition('=')[0], allowed, 1)
  hint = f" Did you mean '{near[0]}'?" if near else ''
  return UserError(
    f"{where}: unknown argument '{pair}'; after the target come key=value "
    f'pairs separated by commas; keys are {", ".join(allowed)}.{hint}'
  )


def _short(config: Mapping[str, Any], name: str) -> str:
  leaf = name.partition('.')[2]
  return leaf if full_name(config, leaf) == name else name


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


def choose_length(
  config: ml_collections.ConfigDict, given: Iterable[str]
) -> None:
  """Lets a given `run.steps` replace `run.epochs`, or the other way round."""
  length = {'steps', 'epochs'}
  chosen = length & {name.removeprefix('run.') for name in given}
  if len(chosen) == 1:
    (replaced,) = length - chosen
    config.run[replaced] = 0


def import_beside(file: str | os.PathLike, name: str) -> types.ModuleType:
  """Imports the Python file `name`.py that is beside `file`.

  Configs build on each other this way wherever they are installed.
  """
  path = pathlib.Path(file).with_name(f'{name}.py')
  spec = importlib.util.spec_from_file_location(f'moda_jax_config_{name}', path)
  if spec is None or spec.loader is None:
    raise ImportError(f'{path} is not a Python file')
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module
