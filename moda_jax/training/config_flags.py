"""Flags of commands with a --config: configs by name, mistakes as messages.

They run as `cli.run(main, 'moda_jax.training.config_flags:parse_flags')`.
"""

import re
from typing import Any

from absl import app, flags

from moda_jax import config as config_lib
from moda_jax.errors import UserError
from moda_jax.training import options
from moda_jax.training.config_files import find_config
from moda_jax.training.recorded import RENAMED, name_in_sections


def parse_flags(argv: list[str]) -> list[str]:
  """Parses flags; config flags report some mistakes as other exceptions."""
  argv = [_find_config(argument) for argument in _join_config(argv)]
  _check_number(argv)
  try:
    remaining = app.parse_flags_with_usage(argv)
  except (AttributeError, KeyError) as error:
    raise UserError(_describe_unknown_fields(argv)) from error
  except ImportError as error:
    raise UserError(
      f'--config: the config file cannot be used: {error}.'
    ) from error
  except SyntaxError as error:
    raise UserError(
      f'--config: {error.filename} is not a Python file of a config: '
      f'{error.msg}.'
    ) from error
  if 'config' in flags.FLAGS and flags.FLAGS['config'].present:
    _check_config(argv)
  return remaining


def _join_config(argv: list[str]) -> list[str]:
  """`--config NAME` as `--config=NAME`."""
  joined: list[str] = []
  for argument in argv:
    if joined and joined[-1] in ('--config', '-config'):
      joined[-1] = f'{joined[-1]}={argument}'
    else:
      joined.append(argument)
  return joined


def _find_config(argument: str) -> str:
  """Returns `--config=digits:mnistm` with that config's path for its name."""
  found = re.fullmatch(r'--?config=(\w+)(:.*)?', argument, re.DOTALL)
  if found is None:
    return argument
  return f'--config={find_config(found.group(1))}{found.group(2) or ""}'


def _check_number(argv: list[str]) -> None:
  given = [a for a in argv if re.match(r'--?config(=|$)', a)]
  if not given and _overrides(argv):
    raise UserError(
      f'--config.{_overrides(argv)[0]} is given without --config; see --help.'
    )
  for name in _overrides(argv):
    if name in RENAMED and name in config_lib.SECTIONS:
      raise UserError(
        f'--config.{name} is a section; its choice is --config.{RENAMED[name]}.'
      )
  if len(given) > 1:
    raise UserError(f'--config is given {len(given)} times; it must be once.')


def _check_config(argv: list[str]) -> None:
  """Refuses a config that is not there, and flags that it does not read."""
  try:
    # A config file that is not there is reported only when it is looked at.
    config = flags.FLAGS.config
    _ = config.keys()
  except OSError as error:
    flag: Any = flags.FLAGS['config']
    raise UserError(
      f'--config={flag.config_filename}: no such config file, or unreadable.'
    ) from error
  given = _overrides(argv)
  config_lib.choose_length(config, given)
  options.refuse_unread(config, [*given, *_colon_names(config)])


def _colon_names(config: Any) -> list[str]:
  """The full names of the keys after the colon of --config."""
  flag: Any = flags.FLAGS['config']
  argument = flag.config_filename.partition(':')[2]
  keys = re.findall(r'(?:^|,)([\w.]+)=', argument)
  names = (config_lib.full_name(config, key) for key in keys)
  return [name for name in names if name is not None]


def _overrides(argv: list[str]) -> list[str]:
  """Returns the names in `--config.NAME=VALUE`."""
  found = (re.match(r'--?config\.([^\s=]+)', a) for a in argv)
  return [match.group(1) for match in found if match]


def _describe_unknown_fields(argv: list[str]) -> str:
  given = re.search(r'--?config[= ](\S+)', ' '.join(argv))
  if given is None:
    return '--config must be given; see --help.'
  config: Any = flags.FLAGS['config'].parser.parse(given.group(1))
  lines = []
  for name in _overrides(argv):
    if _has_field(config, name):
      continue
    now = name_in_sections(config, name)
    hint = f'it is now --config.{now}' if now else ''
    known = ', '.join(config_lib.leaves(config))
    hint = hint or f'it has {known}'
    lines.append(f'config.{name}: no such value in the config; {hint}.')
  return '\n'.join(lines)


def _has_field(config: Any, path: str) -> bool:
  for name in path.split('.'):
    if not hasattr(config, 'keys') or name not in config:
      return False
    config = config[name]
  return True
