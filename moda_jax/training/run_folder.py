"""A run's folder: its config, metrics and checkpoints."""

import contextlib
import logging
import os
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

from clu import metric_writers

from moda_jax.errors import UserError
from moda_jax.training import processes, record_file
from moda_jax.training.checkpoints import Checkpoints
from moda_jax.training.metrics_file import MetricsFile, find_free, read_metrics
from moda_jax.training.recorded import as_folder, find_differences
from moda_jax.training.run_lock import RunLock
from moda_jax.training.saved_states import Saved, find_steps
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
    lock: RunLock | None = None,
    reading: bool = False,
  ):
    """Opens or makes the folder; refuses one of another config or data.

    Args:
      path: the folder.
      record: what the run is, see `recorded.to_record`.
      depends_on_length: what keeps the run from being extended, if anything.
      lock: of the folder, where it has been taken already.
      reading: leaves the folder as it is: the run may be under way.
    """
    self.path = as_folder(path).absolute()
    self.record = record
    self._is_written_here = processes.is_first()
    self._lock = lock or RunLock(self.path)
    self._metrics = MetricsFile(self.path)
    # Made when there is something to write.
    self._events: metric_writers.AsyncWriter | None = None
    try:
      with processes.fail_together():
        if self._is_written_here:
          self._claim(reading)
      with processes.fail_together():
        self._check_shared()
        self._compare(depends_on_length)
    except UserError:
      self._lock.release()
      raise
    kept = record.get('run', {}).get('keep_checkpoints', 2)
    self.checkpoints = Checkpoints(self.path, kept, reading)

  def _claim(self, reading: bool) -> None:
    """Makes sure that the folder can be used, and by this process alone."""
    with self._refusing():
      if not reading:
        self.path.mkdir(parents=True, exist_ok=True)
      checkpoints = self.path / 'checkpoints'
      if checkpoints.exists() and not checkpoints.is_dir():
        raise NotADirectoryError(f'{checkpoints.name} in it is a file')
      self._metrics.check()  # refuses what the run would overwrite
      if reading:
        return
      found = record_file.find_record(self.path)
      if not os.access(self.path, os.W_OK):
        raise PermissionError(f'no right to write to {self.path}')
      self._lock.take()
      if found is None:
        self.write_record()
      elif found.is_copy:
        record_file.put_back(self.path, found.values)

  @contextlib.contextmanager
  def _refusing(self) -> Iterator[None]:
    """Turns what is wrong with the folder into a message."""
    try:
      yield
    except (OSError, ValueError) as error:
      raise UserError(
        f"--workdir='{self.path}' cannot be used: {error}. It must be a folder "
        'that can be written to, new or of an earlier run.'
      ) from error

  def _compare(self, depends_on_length: str) -> None:
    """Refuses a folder of another config or data."""
    with self._refusing():
      recorded = record_file.find_record(self.path)
    found = recorded.values if recorded else {}
    about, now = found.get('record', {}), self.record['record']
    if not now.get('command'):  # resumed from Python
      now['command'] = about.get('command', '')
    # What a run has once started from remains so, asked for again or not.
    origin = about.get('started_from', {})
    if origin and now.get('started_from', origin)['path'] == origin['path']:
      now['started_from'] = origin
    differing = find_differences(found, self.record, depends_on_length)
    if differing:
      raise UserError(
        f"--workdir='{self.path}' holds a run of another config. They differ "
        'in\n  '
        + '\n  '.join(differing)
        + f"\nTo train this one beside it: --workdir='{find_free(self.path)}'."
      )

  def _check_shared(self) -> None:
    """Refuses a folder that the process which has made it sees alone."""
    is_there = (self.path / record_file.FILE).exists()
    if not is_there and not find_steps(self.path):
      raise UserError(
        f"--workdir='{self.path}' is not what the first process has made: it "
        'must be in a place that all processes share.'
      )

  def write_record(self) -> None:
    """Records what the run is now: an extended one has another length."""
    if self._is_written_here:
      record_file.write(self.path, self.record)

  def restore(self, state: TrainState, preferred: Sequence[int] = ()) -> Saved:
    """Returns the last sound checkpoint, or `state` where there is none.

    Args:
      state: arrays as the checkpoint has them.
      preferred: steps whose checkpoints come before the last one.
    """
    saved = self.checkpoints.restore(state, preferred)
    if saved is None:
      return Saved(state, {})
    step = int(saved.state.step)
    _log.info('resuming at step %d from %s', step, self.path)
    return saved

  @property
  def started_from(self) -> pathlib.Path | None:
    """The folder of the run whose state this one starts with."""
    origin = self.record['record'].get('started_from')
    return pathlib.Path(origin['path']) if origin else None

  def record_start(self, state: TrainState) -> None:
    """Records a state taken over from another run, and saves it.

    From then on this run needs the other one no more.
    """
    step = int(state.step)
    self.record['record']['started_from']['step'] = step
    self.write_record()
    self.save(state, step, {})

  def save(
    self, state: TrainState, step: int, unlogged: dict[str, Any]
  ) -> None:
    """Begins to write a checkpoint; training may go on meanwhile.

    Args:
      state: what is saved.
      step: of the state.
      unlogged: what has no line of metrics yet, see `MetricsBuffer`.
    """
    unlogged = unlogged | self._metrics.describe()
    self.checkpoints.save(state, step, self.record, unlogged)

  def write_metrics(self, step: int, metrics: dict[str, float]) -> None:
    """Appends a line to `metrics.jsonl` and to the TensorBoard events."""
    if not self._is_written_here:
      return
    try:
      self._metrics.append(step, metrics)
    except OSError as error:
      raise UserError(
        f'Metrics cannot be written to {self.path}: {error}. Training stops; '
        f'{self.checkpoints.describe()}.'
      ) from error
    if self._events is None:
      self._events = metric_writers.AsyncWriter(
        metric_writers.SummaryWriter(str(self.path))
      )
    self._events.write_scalars(step, metrics)

  def prepare_metrics(self, saved: Saved) -> None:
    """Makes `metrics.jsonl` fit to go on from a checkpoint."""
    if self._is_written_here:
      self._metrics.prepare(int(saved.state.step), saved.unlogged)

  def read_metrics(self) -> list[dict[str, float]]:
    """Returns the lines of `metrics.jsonl`."""
    return read_metrics(self.path)

  def close(self) -> None:
    """Waits until everything is on disk."""
    try:
      self.checkpoints.close()
      if self._events is not None:
        self._events.close()
    finally:
      self._lock.release()
