"""A run's folder: its config, metrics and checkpoints."""

import json
import logging
import os
import pathlib
from typing import Any

from clu import metric_writers

from moda_jax.errors import UserError
from moda_jax.files.atomic import write_whole
from moda_jax.training.checkpoints import Checkpoints
from moda_jax.training.recorded import find_differences
from moda_jax.training.train_step import TrainState

_log = logging.getLogger(__name__)


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
    if not os.fspath(path):
      raise UserError("--workdir='' does not name a folder.")
    self.path = pathlib.Path(path).absolute()
    self._record = record
    self._claim(record, depends_on_length)
    self._metrics_path = self.path / 'metrics.jsonl'
    # Made when there is something to write.
    self._events: metric_writers.AsyncWriter | None = None
    kept = record.get('run', {}).get('keep_checkpoints', 2)
    self.checkpoints = Checkpoints(self.path, kept)

  def _claim(self, record: dict[str, Any], depends_on_length: str) -> None:
    path = self.path / 'config.json'
    try:
      self.path.mkdir(parents=True, exist_ok=True)
      if not path.exists():
        if any(self.path.glob('checkpoints/*')):
          raise ValueError('it has checkpoints, but no config.json')
        self.write_record()
      if not os.access(self.path, os.W_OK):
        raise PermissionError(f'no right to write to {self.path}')
      found = json.loads(path.read_text())
      if not isinstance(found, dict):
        raise ValueError('config.json was not written by a run')
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
        + f"\nTo train this one beside it: --workdir='{self._find_free()}'."
      )

  def _find_free(self) -> pathlib.Path:
    """Returns the name of a folder that is not there yet."""
    number = 2
    while (free := self.path.with_name(f'{self.path.name}_{number}')).exists():
      number += 1
    return free

  def write_record(self) -> None:
    """Records what the run is now: an extended one has another length."""
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
    """Drops what an interrupted run logged beyond its last checkpoint."""
    kept = [line for line in self.read_metrics() if line['step'] <= step]
    text = ''.join(json.dumps(line) + '\n' for line in kept)
    with write_whole(self._metrics_path) as file:
      file.write(text)

  def close(self) -> None:
    """Waits until everything is on disk."""
    self.checkpoints.close()
    if self._events is not None:
      self._events.close()


def read_metrics(path: str | os.PathLike) -> list[dict[str, float]]:
  """Returns the lines of `metrics.jsonl`; a cut last line is left out."""
  file = pathlib.Path(path) / 'metrics.jsonl'
  if not file.exists():
    return []
  lines = []
  for line in file.read_text().splitlines():
    try:
      lines.append(json.loads(line))
    except json.JSONDecodeError:
      break
  return lines
