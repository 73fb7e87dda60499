"""The config of a run as its folder records it, today's and earlier ones'."""

import json
import os
import pathlib
from typing import Any, NamedTuple

import ml_collections

import moda_jax
from moda_jax import cli
from moda_jax.config import SECTIONS
from moda_jax.errors import UserError
from moda_jax.training import options
from moda_jax.training.model import Inputs
from moda_jax.training.record_file import FILE, find_record

_RECORD = 'record'  # what is known once the data is loaded
_MISSING = 'missing'
# The places of files are not part of the experiment, nor are the version and
# which checkpoints are kept.
NOT_COMPARED = (
  'data.data_dir',
  'data.skip_unreadable',  # what was read is compared by itself
  'network.pretrained',
  'network.feature_cache',
  'run.compilation_cache',
  'run.devices',
  'run.checkpoint_minutes',
  'run.keep_checkpoints',
  'run.selection',
  'record.version',
  'record.command',
  'record.started_from.step',
  # When something is said, saved or evaluated, and how: not what is trained.
  'run.log_every',
  'run.eval_every',
  'run.checkpoint_every',
  'run.eval_batch_size',
  # Nothing that was not finite is part of a checkpoint.
  'run.on_nonfinite',
  'run.max_skipped',
)
_FINGERPRINTS = 'record.fingerprints.'
_SEARCH = 'search.'  # ranges for searches, which no run reads
_LENGTH = ('run.steps', 'run.epochs')


class Recorded(NamedTuple):
  """What a run's folder says about the run.

  Attributes:
    config: the run's.
    inputs: what its model takes and gives; None in folders of version 0.1,
      which did not record it.
    origins: what served each domain.
  """

  config: ml_collections.ConfigDict
  inputs: Inputs | None
  origins: dict[str, str]


def to_record(
  config: ml_collections.ConfigDict,
  origins: dict[str, str],
  inputs: Inputs,
  fingerprints: dict[str, str] | None = None,
  started_from: pathlib.Path | None = None,
) -> dict[str, Any]:
  """Returns what `config.json` holds.

  Args:
    config: the run's.
    origins: what serves each domain.
    inputs: what the model takes and gives.
    fingerprints: of the data, by domain.
    started_from: the folder of the run whose state this one starts with.
  """
  record = {
    'version': moda_jax.__version__,
    'command': cli.command_line(),
    'origins': origins,
    'inputs': _to_values(inputs),
  }
  if fingerprints:
    record['fingerprints'] = fingerprints
  if started_from:
    record['started_from'] = {'path': str(started_from)}
  whole = json.loads(config.to_json()) | {_RECORD: record}
  return json.loads(json.dumps(whole))  # tuples as lists, as they are read


def _to_values(inputs: Inputs) -> dict[str, Any]:
  values = inputs._asdict()
  if not inputs.picture_size:  # as runs before there was such a thing
    del values['picture_size']
  return values


def find_differences(
  found: dict[str, Any], now: dict[str, Any], depends_on_length: str = ''
) -> list[str]:
  """Returns a line for each value in which two recorded configs differ.

  What cannot change the result so far is not compared: a run may be extended,
  and how often it is logged, evaluated and saved may change. A value that the
  record lacks, because the option is newer, counts as its default.

  Args:
    found: what the folder has.
    now: what is to be trained.
    depends_on_length: why the run cannot be extended, if it cannot.
  """
  there, here = flatten(found), flatten(now)
  later = _find_defaults()
  lines = []
  for key in sorted(there | here):
    before = there.get(key, later.get(key, _MISSING))
    after = here.get(key, _MISSING)
    if before == after or key in NOT_COMPARED or key.startswith(_SEARCH):
      continue
    if key in _LENGTH and not depends_on_length:
      continue
    if key.startswith(_FINGERPRINTS) and before == _MISSING:
      continue  # a record of before there were any
    line = f'{key}: {before!r} there, {after!r} now'
    if key.startswith(_FINGERPRINTS):
      line += ' (its files have been changed or replaced)'
    if key in _LENGTH:
      line += f' ({depends_on_length} depends on the length)'
    lines.append(line)
  return lines


def describe_compared(record: dict[str, Any]) -> str:
  """Returns all that must be the same in every process of a run, as text."""
  compared = {
    key: value
    for key, value in flatten(record).items()
    if key not in NOT_COMPARED
  }
  return json.dumps(compared, sort_keys=True)


def _find_defaults() -> dict[str, Any]:
  """Returns what a record means that lacks a value, by full name."""
  sections = json.loads(options.base_config().to_json())
  inputs = {f'record.inputs.{k}': v for k, v in Inputs._field_defaults.items()}
  return json.loads(json.dumps(flatten(sections) | inputs))


def flatten(values: dict[str, Any], prefix: str = '') -> dict[str, Any]:
  """Returns nested values by their full names, joined by dots."""
  flat: dict[str, Any] = {}
  for key, value in values.items():
    if isinstance(value, dict):
      flat |= flatten(value, f'{prefix}{key}.')
    else:
      flat[f'{prefix}{key}'] = value
  return flat


def as_folder(workdir: Any) -> pathlib.Path:
  """Returns the path of a run's folder, which need not be there."""
  if not isinstance(workdir, str | os.PathLike) or not os.fspath(workdir):
    raise UserError(f'--workdir={workdir!r} does not name a folder.')
  return pathlib.Path(workdir)


def read_recorded(workdir: str | os.PathLike) -> Recorded:
  """Reads the config of a run from its folder."""
  path = as_folder(workdir) / FILE
  try:
    found = find_record(workdir)
    if found is None:
      raise UserError(f"'{workdir}' does not hold a run: it has no {FILE}.")
    values = found.values
    is_flat = _RECORD not in values
    return _from_flat(values) if is_flat else _from_sections(values)
  except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
    raise UserError(
      f'{path} is damaged, or was not written by a run: {error}.'
    ) from error


def _from_sections(values: dict[str, Any]) -> Recorded:
  record = values.pop(_RECORD)
  inputs = record['inputs']
  return Recorded(
    _to_config(values),
    Inputs(
      tuple(inputs['shape']),
      tuple(inputs['classes']),
      inputs['variant'],
      inputs['padded'],
      inputs.get('picture_size', 0),
    ),
    record['origins'],
  )


def _to_config(values: dict[str, Any]) -> ml_collections.ConfigDict:
  """Puts values into a whole config, lists as the tuples that they were."""
  config = options.base_config()
  config.experiment = values['experiment']
  config.search.update(values.get('search', {}))
  for section in SECTIONS:
    for name, value in values[section].items():
      if name in config[section] or section == 'data':
        _set(config[section], name, value)
  return options.prune(config)


def _set(section: ml_collections.ConfigDict, name: str, value: Any) -> None:
  if isinstance(value, dict):
    section[name].update(value)
  elif isinstance(value, list):
    section[name] = tuple(
      tuple(item) if isinstance(item, list) else item for item in value
    )
  else:
    section[name] = value


# Version 0.1 had one flat list of values, some by another name.
RENAMED = {
  'test': 'data.evaluate_on',
  'weak': 'views.weak_augment',
  'method': 'objective.method',
  'network': 'network.name',
  'adadelta_rho': 'optimizer.rho',
  'optimizer': 'optimizer.name',
}
_RENAMED_VALUES = {
  'data.evaluate_on': {'split': 'test_split', 'rest': 'undrawn'},
}


def _from_flat(values: dict[str, Any]) -> Recorded:
  """Reads a config of version 0.1, whose `data` says what served a domain."""
  origins = values.pop('data', {})
  config = options.base_config()
  config.experiment = values.pop('experiment')
  config.search.update(values.pop('search', {}))
  # What networks started from before there was a choice.
  config.network.init = 'torch'
  for full, value in translate_flat(config, values).items():
    section, leaf = full.split('.')
    _set(config[section], leaf, value)
  return Recorded(options.prune(config), None, origins)


def translate_flat(
  config: ml_collections.ConfigDict, values: dict[str, Any]
) -> dict[str, Any]:
  """Returns values of version 0.1 by their full names of today.

  Args:
    config: has all sections.
    values: by flat names.
  """
  translated = {}
  for name, value in values.items():
    full = name_in_sections(config, name)
    if full is None:
      raise KeyError(f'unknown value {name}')
    if isinstance(value, str):
      value = _RENAMED_VALUES.get(full, {}).get(value, value)
    translated[full] = value
  return translated


def name_in_sections(
  config: ml_collections.ConfigDict, flat: str
) -> str | None:
  """Returns the full name of a value that version 0.1 had by a flat one."""
  if flat in RENAMED:
    return RENAMED[flat]
  for section in SECTIONS:
    if flat in config[section]:
      return f'{section}.{flat}'
  return None
