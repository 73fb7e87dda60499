"""The lines of `metrics.jsonl`, of which some may be damaged."""

import bisect
import json
import logging
import os
import pathlib
import re
from typing import Any, NamedTuple

from moda_jax.errors import UserError
from moda_jax.files.atomic import write_whole

_log = logging.getLogger(__name__)
_FILE = 'metrics.jsonl'
_ASIDE = 'metrics_damaged.jsonl'
_BEGINNING = b'{"step": '  # of every line
# Where the end of a line is what is damaged, the next one begins all the same.
_ENDS = re.compile(rb'\n|(?=' + re.escape(_BEGINNING) + rb')')
_OURS = re.compile(re.escape(_BEGINNING) + rb'\d')

Line = dict[str, Any]


class _Parsed(NamedTuple):
  """What a file holds: lines, and what should be some."""

  lines: list[Line]
  damaged: list[bytes]


class MetricsFile:
  """`metrics.jsonl` of a run that is trained: each step once, in order."""

  def __init__(self, workdir: str | os.PathLike):
    self._folder = pathlib.Path(workdir)
    self._path = self._folder / _FILE

  def check(self) -> None:
    """Refuses a file that no run has written."""
    _parse(self._path)

  def append(self, step: int, metrics: dict[str, float]) -> None:
    """Appends a line."""
    with self._path.open('a') as file:
      file.write(json.dumps({'step': step, **metrics}) + '\n')

  def prepare(self, step: int) -> None:
    """Makes the file fit to go on from a step.

    Drops what an interrupted run logged beyond its last checkpoint. Without a
    checkpoint, which may have been deleted, nothing of it is left: then the
    file is kept under another name. Damaged lines are set aside.

    Args:
      step: that the run goes on from.
    """
    lines, damaged = _parse(self._path)
    if damaged:
      with (self._folder / _ASIDE).open('ab') as file:
        file.writelines(piece + b'\n' for piece in damaged)
      _log.warning(
        '%s: damaged lines (%d) are set aside in %s',
        _FILE,
        len(damaged),
        _ASIDE,
      )
    if lines and not step:
      self._keep_whole(lines[-1]['step'])
    kept = [line for line in lines if line['step'] <= step]
    with write_whole(self._path) as file:
      file.writelines(json.dumps(line) + '\n' for line in kept)

  def _keep_whole(self, last: int) -> None:
    aside = find_free(self._folder / 'metrics', '.jsonl')
    self._path.rename(aside)
    _log.warning(
      'there is no checkpoint in %s: training starts again, and what was '
      'logged up to step %d is kept in %s',
      self._folder,
      last,
      aside.name,
    )


def find_free(path: pathlib.Path, suffix: str = '') -> pathlib.Path:
  """Returns a name with a number that nothing has yet."""
  number = 2
  while (free := path.with_name(f'{path.name}_{number}{suffix}')).exists():
    number += 1
  return free


def read_metrics(workdir: str | os.PathLike) -> list[Line]:
  """Returns the lines of `metrics.jsonl`; those damaged are left out.

  A last line that was cut is left out as well: a killed run leaves such.
  """
  lines, damaged = _parse(pathlib.Path(workdir) / _FILE)
  if damaged:
    _log.warning('%s: damaged lines (%d) are left out', _FILE, len(damaged))
  return lines


def last_values(lines: list[Line]) -> Line:
  """Returns the last value of every name, for lines that lack some."""
  return {name: value for line in lines for name, value in line.items()}


def _parse(path: pathlib.Path) -> _Parsed:
  """Reads a file of metrics; refuses one that no run has written."""
  if not path.exists():
    return _Parsed([], [])
  try:
    content = path.read_bytes()
    pieces = [piece for piece in _ENDS.split(content) if piece]
    if pieces and not content.endswith(b'\n') and _is_cut(pieces[-1]):
      pieces.pop()
    if pieces and not any(_OURS.match(piece) for piece in pieces):
      raise ValueError(f'{pieces[0][:40]!r} is not a line of metrics')
  except (OSError, ValueError) as error:
    raise UserError(
      f'{path} is damaged, or was not written by a run: {error}. Move it away '
      'to go on without it.'
    ) from error
  return _sort_out(pieces)


def _is_cut(line: bytes) -> bool:
  """Says whether a line is one of metrics whose end was not written."""
  is_ours = line.startswith(_BEGINNING[: len(line)])
  return is_ours and _read_line(line) is None


def _read_line(line: bytes) -> Line | None:
  """Returns a line's values; None where it is damaged."""
  try:
    values = json.loads(line)
  except ValueError:  # not JSON, or not even text
    return None
  if not isinstance(values, dict) or type(values.get('step')) is not int:
    return None
  numbers = all(type(value) in (int, float) for value in values.values())
  return values if numbers else None


def _sort_out(pieces: list[bytes]) -> _Parsed:
  """Tells sound lines from others; of steps out of order, as few as can be."""
  found = [_read_line(piece) for piece in pieces]
  sound = [i for i, line in enumerate(found) if line is not None]
  places = _longest_rising([found[i]['step'] for i in sound])  # type: ignore[index]
  kept = {sound[place] for place in places}
  return _Parsed(
    [line for i, line in enumerate(found) if line is not None and i in kept],
    [piece for i, piece in enumerate(pieces) if i not in kept],
  )


def _longest_rising(values: list[int]) -> list[int]:
  """Returns the places of the longest subsequence that rises strictly."""
  ends: list[int] = []  # the smallest end of a subsequence, by its length
  places: list[int] = []  # where that end is
  before: list[int] = []  # what precedes each value, −1 for none
  for place, value in enumerate(values):
    length = bisect.bisect_left(ends, value)
    before.append(places[length - 1] if length else -1)
    if length == len(ends) or value < ends[length]:
      ends[length : length + 1] = [value]
      places[length : length + 1] = [place]
  chosen = []
  place = places[-1] if places else -1
  while place >= 0:
    chosen.append(place)
    place = before[place]
  return chosen[::-1]
