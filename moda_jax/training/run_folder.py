"""A run's folder: its config, metrics and checkpoints."""

import json
import logging
import os
import pathlib
from typing import Any

from clu import metric_writers

from moda_jax.errors import UserError
from moda_jax.files.atomic import write_whole
from moda_jax.training import processes
from moda_jax.training.checkpoints import Checkpoints
from moda_jax.training.recorded import as_folder, find_differences
from moda_jax.training.train_step import TrainState

_log = logging.getLogger(__name__)
_METRICS = 'metrics.jsonl'
_BEGINNING = '{"step": '  # of every line of metrics


class RunFolder:
  """What a run leaves behind, and what it resumes from.

  `config.json`, `metrics.jsonl`, TensorBoard events and `checkpoints/`. A
  folder belongs to one config: another one is refused.
  """

  def __init__(
    self,
    path: str | os.PathLike,
    record: dict[str, Any],
    depends_on_length: str = '',
  ):
    """Opens or makes the folder; refuses one of another config or data.

    Args:
      path: the folder.
      record: what the run is, see `recorded.to_record`.
      depends_on_length: what keeps the run from being extended, if anything.
    """
    self.path = as_folder(path).absolute()
    self._record = record
    self._metrics_path = self.path / _METRICS
    self._is_written_here = processes.is_first()
    with processes.fail_together():
      if self._is_written_here:
        self._claim(record, depends_on_length)
    with processes.fail_together():
      self._check_shared()
    # Made when there is something to write.
    self._events: metric_writers.AsyncWriter | None = None
    kept = record.get('run', {}).get('keep_checkpoints', 2)
    self.checkpoints = Checkpoints(self.path, kept)

  def _claim(self, record: dict[str, Any], depends_on_length: str) -> None:
    path = self.path / 'config.json'
    try:
      self.path.mkdir(parents=True, exist_ok=True)
      checkpoints = self.path / 'checkpoints'
      if checkpoints.exists() and not checkpoints.is_dir():
        raise NotADirectoryError(f'{checkpoints.name} in it is a file')
      self.read_metrics()  # refuses what the run would overwrite
      if not path.exists():
        if any(self.path.glob('checkpoints/*')):
          raise ValueError('it has checkpoints, but no config.json')
        self.write_record()
      if not os.access(self.path, os.W_OK):
        raise PermissionError(f'no right to write to {self.path}')
      found = _read_config(path)
    except (OSError, ValueError) as error:
      raise UserError(
        f"--workdir='{self.path}' cannot be used: {error}. It must be a folder "
        'that can be written to, new or of an earlier run.'
      ) from error
    if not record['record'].get('command'):  # resumed from Python
      record['record']['command'] = found.get('record', {}).get('command', '')
    differing = find_differences(found, record, depends_on_length)
    if differing:
      raise UserError(
        f"--workdir='{self.path}' holds a run of another config. They differ "
        'in\n  '
        + '\n  '.join(differing)
        + f"\nTo train this one beside it: --workdir='{_find_free(self.path)}'."
      )

  def _check_shared(self) -> None:
    """Refuses a folder that the process which has made it sees alone."""
    if not (self.path / 'config.json').exists():
      raise UserError(
        f"--workdir='{self.path}' is not what the first process has made: it "
        'must be in a place that all processes share.'
      )

  def write_record(self) -> None:
    """Records what the run is now: an extended one has another length."""
    if not self._is_written_here:
      return
    with write_whole(self.path / 'config.json') as file:
      file.write(json.dumps(self._record, indent=2) + '\n')

  def restore(self, state: TrainState) -> TrainState:
    """Returns the last checkpoint, or `state` where there is none."""
    restored = self.checkpoints.restore(state)
    if restored is not state:
      _log.info('resuming at step %d from %s', int(restored.step), self.path)
    return restored

  def save(self, state: TrainState, step: int) -> None:
    """Begins to write a checkpoint; training may go on meanwhile."""
    self.checkpoints.save(state, step, self._record)

  def write_metrics(self, step: int, metrics: dict[str, float]) -> None:
    """Appends a line to `metrics.jsonl` and to the TensorBoard events."""
    if not self._is_written_here:
      return
    with self._metrics_path.open('a') as file:
      file.write(json.dumps({'step': step, **metrics}) + '\n')
    if self._events is None:
      self._events = metric_writers.AsyncWriter(
        metric_writers.SummaryWriter(str(self.path))
      )
    self._events.write_scalars(step, metrics)

  def read_metrics(self) -> list[dict[str, float]]:
    """Returns the lines of `metrics.jsonl`."""
    return read_metrics(self.path)

  def forget_metrics_after(self, step: int) -> None:
    """Drops what an interrupted run logged beyond its last checkpoint.

    Without a checkpoint, which may have been deleted, nothing of it is left:
    then the file is kept under another name.
    """
    if not self._is_written_here:
      return
    lines = self.read_metrics()
    if lines and not step:
      aside = _find_free(self.path / 'metrics', '.jsonl')
      self._metrics_path.rename(aside)
      _log.warning(
        'there is no checkpoint in %s: training starts again, and what was '
        'logged up to step %d is kept in %s',
        self.path,
        lines[-1]['step'],
        aside.name,
      )
    kept = [line for line in lines if line['step'] <= step]
    text = ''.join(json.dumps(line) + '\n' for line in kept)
    with write_whole(self._metrics_path) as file:
      file.write(text)

  def close(self) -> None:
    """Waits until everything is on disk."""
    self.checkpoints.close()
    if self._events is not None:
      self._events.close()


def _find_free(path: pathlib.Path, suffix: str = '') -> pathlib.Path:
  """Returns a name with a number that nothing has yet."""
  number = 2
  while (free := path.with_name(f'{path.name}_{number}{suffix}')).exists():
    number += 1
  return free


def _read_config(path: pathlib.Path) -> dict[str, Any]:
  try:
    found = json.loads(path.read_text())
  except ValueError as error:
    raise ValueError(f'{path.name} is damaged ({error})') from error
  if not isinstance(found, dict) or not isinstance(
    found.get('record', {}), dict
  ):
    raise ValueError(f'{path.name} was not written by a run')
  return found


def read_metrics(path: str | os.PathLike) -> list[dict[str, float]]:
  """Returns the lines of `metrics.jsonl`; a cut last line is left out."""
  file = pathlib.Path(path) / _METRICS
  if not file.exists():
    return []
  try:
    *lines, last = file.read_text().split('\n')
    if last and not _is_cut(last):
      lines.append(last)
    return [_read_line(line) for line in lines]
  except (OSError, ValueError) as error:
    raise UserError(
      f'{file} is damaged, or was not written by a run: {error}. Move it away '
      'to go on without it.'
    ) from error


def _is_cut(line: str) -> bool:
  """Says whether a line is one of metrics whose end was not written."""
  if not line.startswith(_BEGINNING[: len(line)]):
    return False
  try:
    json.loads(line)
  except ValueError:
    return True
  return False


def _read_line(line: str) -> dict[str, float]:
  values = json.loads(line)
  if not isinstance(values, dict) or type(values.get('step')) is not int:
    raise ValueError(f'{line[:40]!r} is not a line of metrics')
  return values
