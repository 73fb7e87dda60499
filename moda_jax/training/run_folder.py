"""A run's folder: its config, metrics and checkpoints."""

import json
import logging
import os
import pathlib
from typing import Any

import ml_collections
import orbax.checkpoint as ocp
from clu import metric_writers

from moda_jax.errors import UserError
from moda_jax.files.atomic import write_whole
from moda_jax.training.step import TrainState

_log = logging.getLogger(__name__)
_MISSING = 'missing'


class Workdir:
  """What a run leaves behind, and what it resumes from.

  `config.json`, `metrics.jsonl`, TensorBoard events and `checkpoints/`. A
  folder belongs to one config: another one is refused.
  """

  def __init__(
    self,
    path: str | os.PathLike,
    config: ml_collections.ConfigDict,
    data: dict[str, str],
  ):
    """Opens or makes the folder; refuses one of another config or data.

    Args:
      path: the folder.
      config: what the run is.
      data: what serves each of its domains.
    """
    if not os.fspath(path):
      raise UserError("--workdir='' names no folder; it is the run's own.")
    self.path = pathlib.Path(path).absolute()
    self._config = json.loads(config.to_json()) | {'data': data}
    self._claim(self._config)
    self._metrics_path = self.path / 'metrics.jsonl'
    self._events = None  # made when there is something to write
    self._manager = ocp.CheckpointManager(
      self.path / 'checkpoints',
      options=ocp.CheckpointManagerOptions(max_to_keep=2),
      item_names=('state', 'config'),
    )

  def _claim(self, config: dict[str, Any]) -> None:
    path = self.path / 'config.json'
    try:
      self.path.mkdir(parents=True, exist_ok=True)
      if not path.exists():
        if any(self.path.glob('checkpoints/*')):
          raise ValueError('it has checkpoints, but no config.json')
        with write_whole(path) as file:
          file.write(json.dumps(config, indent=2) + '\n')
      if not os.access(self.path, os.W_OK):
        raise PermissionError(f'no right to write to {self.path}')
      found = json.loads(path.read_text())
      if not isinstance(found, dict):
        raise ValueError('config.json is none that a run has written')
    except (OSError, ValueError) as error:
      raise UserError(
        f"--workdir='{self.path}' cannot be used: {error}. It must be a folder "
        'that can be written to, new or of an earlier run.'
      ) from error
    # The place of the data is not part of the experiment.
    differing = [
      f'{key}: {found.get(key, _MISSING)!r} there, {config.get(key)!r} now'
      for key in sorted(config | found)
      if found.get(key, _MISSING) != config.get(key, _MISSING)
      and key != 'data_dir'
    ]
    if differing:
      raise UserError(
        f"--workdir='{self.path}' holds a run of another config; choose "
        'another folder. They differ in\n  ' + '\n  '.join(differing)
      )

  def restore(self, state: TrainState) -> TrainState:
    """Returns the last checkpoint, or `state` where there is none."""
    step = self._manager.latest_step()
    if step is None:
      return state
    try:
      restored = self._manager.restore(
        step, args=ocp.args.Composite(state=ocp.args.StandardRestore(state))
      )
    except (ValueError, KeyError, OSError) as error:
      raise UserError(
        f'The checkpoint of step {step} in {self.path / "checkpoints"} cannot '
        f'be restored: {str(error).splitlines()[0]}. Remove that step to go '
        'on from an earlier one, or choose another --workdir.'
      ) from error
    _log.info('resuming at step %d from %s', step, self.path)
    return restored['state']

  def save(self, state: TrainState, step: int) -> None:
    """Begins to write a checkpoint; training may go on meanwhile."""
    if step != self._manager.latest_step():
      self._manager.save(
        step,
        args=ocp.args.Composite(
          state=ocp.args.StandardSave(state),
          config=ocp.args.JsonSave(self._config),
        ),
      )

  def write_metrics(self, step: int, metrics: dict[str, float]) -> None:
    """Appends a line to `metrics.jsonl` and to the event file."""
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

  def describe_checkpoint(self) -> str:
    """Says which checkpoint there is to go on from."""
    self._manager.wait_until_finished()
    step = self._manager.latest_step()
    if step is None:
      return 'there is no earlier checkpoint'
    return f'the checkpoint of step {step} is kept in {self.path}'

  def close(self) -> None:
    """Waits until everything is on disk."""
    self._manager.wait_until_finished()
    self._manager.close()
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
