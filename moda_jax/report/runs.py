"""Runs as the page shows them: just trained, in training, or from a folder."""

import os
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import ml_collections

from moda_jax.errors import UserError
from moda_jax.objectives import name_method
from moda_jax.report.curves import Lines
from moda_jax.training.experiment import Experiment
from moda_jax.training.outcome import Outcome
from moda_jax.training.record_file import find_record
from moda_jax.training.recorded import read_recorded
from moda_jax.training.run_folder import read_metrics
from moda_jax.training.train_step import TrainState
from moda_jax.training.trained import load_trained


class ReportedRun(NamedTuple):
  """What is known of a run.

  Attributes:
    name: what the page calls it.
    workdir: its folder.
    config: what was trained.
    origins: what served each domain.
    command: that started it; '' where none is recorded.
    start: the state of another run that it started with, if any, in words.
    metrics: the lines of metrics.jsonl.
    experiment: with the data; None where it cannot be read.
    state: to predict with; None while training goes on.
    missing: why something is not shown.
  """

  name: str
  workdir: pathlib.Path
  config: ml_collections.ConfigDict
  origins: dict[str, str]
  command: str
  metrics: Lines
  experiment: Experiment | None = None
  state: TrainState | None = None
  missing: str = ''
  start: str = ''

  @property
  def method(self) -> str:
    """The name of the method, with the parts that are not its own."""
    return name_method(self.config.objective)

  @property
  def step(self) -> int:
    """The last step that was logged."""
    return int(self.metrics[-1]['step']) if self.metrics else 0


def from_outcome(
  name: str, outcome: Outcome, workdir: str | os.PathLike
) -> ReportedRun:
  """Describes a run that has just been trained."""
  training = in_training(name, outcome.experiment, workdir)
  return training._replace(state=outcome.state, missing='')


def in_training(
  name: str, experiment: Experiment, workdir: str | os.PathLike
) -> ReportedRun:
  """Describes a run that is still trained."""
  folder = pathlib.Path(workdir)
  command, start = _read_start(folder)
  return ReportedRun(
    name=name,
    workdir=folder,
    config=experiment.config,
    origins=experiment.origins,
    command=command,
    start=start,
    metrics=read_metrics(folder),
    experiment=experiment,
    missing=(
      'Training goes on. Accuracy on the sources, confusions, pictures and '
      'maps follow when it ends.'
    ),
  )


def open_runs(workdirs: Sequence[str | os.PathLike]) -> list[ReportedRun]:
  """Opens runs in folders; names them by what tells them apart."""
  opened = [_open(pathlib.Path(workdir)) for workdir in workdirs]
  for name_of in (
    lambda run: run.method,
    lambda run: run.workdir.name,
    lambda run: str(run.workdir),
  ):
    names = [name_of(run) for run in opened]
    if len(set(names)) == len(names):
      break
  return [
    run._replace(name=name) for run, name in zip(opened, names, strict=True)
  ]


def _open(workdir: pathlib.Path) -> ReportedRun:
  recorded = read_recorded(workdir)
  command, start = _read_start(workdir)
  run = ReportedRun(
    name='',
    workdir=workdir,
    config=recorded.config,
    origins=recorded.origins,
    command=command,
    start=start,
    metrics=read_metrics(workdir),
  )
  if not run.metrics:
    raise UserError(f"'{workdir}' has logged nothing yet: no metrics.jsonl.")
  try:
    if 'memory' in recorded.config.data.datasets.values():
      raise UserError(
        'It was trained on arrays in memory, which are not kept; Run.report() '
        'shows them right after training.'
      )
    state = load_trained(workdir).state
    return run._replace(experiment=Experiment(recorded.config), state=state)
  except UserError as error:
    return run._replace(
      missing=f'Nothing is shown of the data, which is not there: {error}'
    )


def _read_start(workdir: pathlib.Path) -> tuple[str, str]:
  """Returns the command of a run, and what it started from."""
  found = find_record(workdir)
  record: dict[str, Any] = found.values.get('record', {}) if found else {}
  origin = record.get('started_from')
  start = (
    f'step {origin.get("step", "?")} of {origin["path"]}' if origin else ''
  )
  return record.get('command', ''), start
