"""The lines of `metrics.jsonl`, of which some may be damaged."""

import bisect
import json
import logging
import os
import pathlib
import re
from collections.abc import Iterable
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
_LINES = 'lines'  # what a checkpoint calls the steps that had a line
_SHOWN = 10  # steps that a warning names

Line = dict[str, Any]


class _Parsed(NamedTuple):
  """What a file holds: lines, what should be some, a last one cut short."""

  lines: list[Line]
  damaged: list[bytes]
  cut: list[bytes]


class MetricsFile:
  """`metrics.jsonl` of a run that is trained: each step once, in order."""

  def __init__(self, workdir: str | os.PathLike):
    self._folder = pathlib.Path(workdir)
    self._path = self._folder / _FILE
    self._steps: list[int] = []  # of its lines

  def check(self) -> None:
    """Refuses a file that no run has written."""
    _parse(self._path)

  def append(self, step: int, metrics: dict[str, float]) -> None:
    """Appends a line."""
    with self._path.open('a') as file:
      file.write(json.dumps({'step': step, **metrics}) + '\n')
    self._steps.append(step)

  def describe(self) -> dict[str, Any]:
    """Returns what a checkpoint keeps, for lost lines to be missed later."""
    return {_LINES: _to_ranges(self._steps)}

  def prepare(self, step: int, saved: dict[str, Any] | None = None) -> None:
    """Makes the file fit to go on from a step.

    Drops what an interrupted run logged beyond its last checkpoint. Without a
    checkpoint, which may have been deleted, nothing of it is left: then the
    file is kept under another name. Damaged lines are set aside, and so is a
    last one that was cut, unless it is made again. Lines that are lost are
    warned about.

    Args:
      step: that the run goes on from.
      saved: what `describe` returned for the checkpoint, which earlier versions
        did not save, and `due` where the line of `step` is still to be written.
    """
    saved = saved or {}
    lines, damaged, cut = _parse(self._path)
    if lines and not step:
      self._keep_whole(lines[-1]['step'])
    last = step - 1 if saved.get('due') else step
    kept = [line for line in lines if line['step'] <= last]
    self._steps = [line['step'] for line in kept]
    due = _from_ranges(saved[_LINES]) if _LINES in saved else None
    # A line that was cut comes after all others: it is made again, unless one
    # of those that the run goes on from is not there.
    needed = step if due is None else max(due, default=0)
    if step and needed > max((line['step'] for line in lines), default=0):
      damaged = damaged + cut
    self._set_aside(damaged)
    _warn_of_lost(sorted({*(due or ())}.difference(self._steps)))
    with write_whole(self._path) as file:
      file.writelines(json.dumps(line) + '\n' for line in kept)

  def _set_aside(self, damaged: list[bytes]) -> None:
    if not damaged:
      return
    with (self._folder / _ASIDE).open('ab') as file:
      file.writelines(piece + b'\n' for piece in damaged)
    _log.warning(
      '%s: damaged lines (%d) are set aside in %s',
      _FILE,
      len(damaged),
      _ASIDE,
    )

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


def _warn_of_lost(steps: list[int]) -> None:
  if not steps:
    return
  more = len(steps) - _SHOWN
  _log.warning(
    '%s: lines are lost, those of steps %s%s',
    _FILE,
    ', '.join(str(step) for step in steps[:_SHOWN]),
    f' and {more} more' if more > 0 else '',
  )


def _to_ranges(steps: Iterable[int]) -> list[list[int]]:
  """Returns rising steps as a few triples: first, last, distance."""
  ranges: list[list[int]] = []
  for step in steps:
    first, last, every = ranges[-1] if ranges else (0, 0, 0)
    if ranges and (first == last or step - last == every):
      ranges[-1] = [first, step, step - last]
    else:
      ranges.append([step, step, 1])
  return ranges


def _from_ranges(ranges: list[list[int]]) -> list[int]:
  return [
    step
    for first, last, every in ranges
    for step in range(first, last + 1, every)
  ]


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
  lines, damaged, _ = _parse(pathlib.Path(workdir) / _FILE)
  if damaged:
    _log.warning('%s: damaged lines (%d) are left out', _FILE, len(damaged))
  return lines


def last_values(lines: list[Line]) -> Line:
  """Returns the last value of every name, for lines that lack some."""
  return {name: value for line in lines for name, value in line.items()}


def _parse(path: pathlib.Path) -> _Parsed:
  """Reads a file of metrics; refuses one that no run has written."""
  if not path.exists():
    return _Parsed([], [], [])
  cut = []
  try:
    content = path.read_bytes()
    pieces = [piece for piece in _ENDS.split(content) if piece]
    if pieces and not content.endswith(b'\n') and _is_cut(pieces[-1]):
      cut.append(pieces.pop())
    if pieces and not any(_OURS.match(piece) for piece in pieces):
      raise ValueError(f'{pieces[0][:40]!r} is not a line of metrics')
  except (OSError, ValueError) as error:
    raise UserError(
      f'{path} is damaged, or was not written by a run: {error}. Move it away '
      'to go on without it.'
    ) from error
  return _Parsed(*_sort_out(pieces), cut)


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


def _sort_out(pieces: list[bytes]) -> tuple[list[Line], list[bytes]]:
  """Tells sound lines from others; of steps out of order, as few as can be."""
  found = [_read_line(piece) for piece in pieces]
  sound = [i for i, line in enumerate(found) if line is not None]
  places = _longest_rising([found[i]['step'] for i in sound])  # type: ignore[index]
  kept = {sound[place] for place in places}
  lines = [
    line for i, line in enumerate(found) if line is not None and i in kept
  ]
  return lines, [piece for i, piece in enumerate(pieces) if i not in kept]


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
