"""The file `config.json` of a run, of which every checkpoint has a copy."""

import contextlib
import json
import logging
import os
import pathlib
from typing import Any, NamedTuple

from moda_jax.files.atomic import write_whole
from moda_jax.training.saved_states import FOLDER, find_steps

_log = logging.getLogger(__name__)
FILE = 'config.json'
_DAMAGED = 'config_damaged.json'


class Record(NamedTuple):
  """What a run is, as its folder says.

  Attributes:
    values: see `recorded.to_record`.
    is_copy: whether they are those of a checkpoint.
  """

  values: dict[str, Any]
  is_copy: bool


def find_record(workdir: str | os.PathLike) -> Record | None:
  """Reads `config.json`, or else its newest copy; None in a new folder.

  Raises:
    ValueError: it is damaged or missing, and no checkpoint has a copy.
    OSError: it cannot be read.
  """
  path = pathlib.Path(workdir) / FILE
  if not path.exists() and not any(path.parent.glob(f'{FOLDER}/*')):
    return None
  try:
    return Record(_read(path), False)
  except FileNotFoundError:
    damage = f'it has checkpoints, but no {FILE}'
  except ValueError as error:
    damage = str(error)
  for step in reversed(find_steps(workdir)):
    copy = path.parent / FOLDER / str(step) / 'config' / 'metadata'
    with contextlib.suppress(OSError, ValueError):
      values = _read(copy)
      _log.warning(
        '%s: %s; what the checkpoint of step %d has of it is used',
        path.parent,
        damage,
        step,
      )
      return Record(values, True)
  raise ValueError(
    f'{damage}, and no checkpoint has a copy of it (config/metadata). Put back '
    f'the {FILE} of this run, or start again in another folder'
  )


def put_back(workdir: str | os.PathLike, values: dict[str, Any]) -> None:
  """Writes `config.json` as a checkpoint has it; keeps one that is damaged."""
  path = pathlib.Path(workdir) / FILE
  if path.exists():
    path.replace(path.with_name(_DAMAGED))
  write(workdir, values)


def write(workdir: str | os.PathLike, values: dict[str, Any]) -> None:
  """Writes `config.json`."""
  with write_whole(pathlib.Path(workdir) / FILE) as file:
    file.write(json.dumps(values, indent=2) + '\n')


def _read(path: pathlib.Path) -> dict[str, Any]:
  try:
    found = json.loads(path.read_text())
  except ValueError as error:
    raise ValueError(f'{path.name} is damaged ({error})') from error
  is_record = isinstance(found, dict) and found
  if not is_record or not isinstance(found.get('record', {}), dict):
    raise ValueError(f'{path.name} was not written by a run')
  return found
