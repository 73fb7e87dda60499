"""What the loop writes down at a step: lines of metrics, unlogged values."""

import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

from moda_jax.errors import NonFiniteError
from moda_jax.training import processes
from moda_jax.training.experiment import Experiment
from moda_jax.training.kept import Keeper
from moda_jax.training.progress import MetricsBuffer, Progress
from moda_jax.training.run_folder import RunFolder
from moda_jax.training.train_step import TrainState

OnLog = Callable[[Experiment, pathlib.Path], None]


class StepLog(NamedTuple):
  """Writes lines of metrics, and saves what has none yet.

  Attributes:
    experiment: what is trained.
    folder: of the run.
    progress: measures and shows.
    buffer: has the metrics since the last line.
    keeper: is told of every evaluation.
    on_log: called with experiment and folder after every line but the last.
  """

  experiment: Experiment
  folder: RunFolder
  progress: Progress
  buffer: MetricsBuffer
  keeper: Keeper
  on_log: OnLog | None

  def evaluates(self, step: int) -> bool:
    """Says whether a step is evaluated after."""
    every = self.experiment.config.run.eval_every
    return step % every == 0 or step == self.experiment.total_steps

  def write(
    self,
    step: int,
    state: TrainState,
    speed: dict[str, float],
    saving: bool = False,
  ) -> TrainState:
    """Writes the line of a step; returns the state, fit to predict with."""
    evaluator, evaluating = self.experiment.evaluator, self.evaluates(step)
    averages = _explain_nonfinite(self.buffer.average, self.folder) | speed
    if evaluating or saving:  # what is saved must be fit to predict with
      state = evaluator.observe_sources(state)
    if evaluating:
      averages |= evaluator.accuracies(state) | evaluator.judge(state)
    self.progress.report(step, averages)
    self.folder.write_metrics(step, averages)
    if evaluating:
      self.keeper.take_in({'step': step, **averages})
      self.folder.checkpoints.protect(self.keeper.best)
    is_last = step == self.experiment.total_steps
    if self.on_log is not None and not is_last and processes.is_first():
      self.on_log(self.experiment, self.folder.path)
    self.progress.resume()
    return state

  def save_unlogged(self, step: int, state: TrainState, due: bool) -> None:
    """Saves a state together with what no line of metrics tells yet."""
    unlogged = _explain_nonfinite(self.buffer.to_unlogged, self.folder)
    unlogged |= {'due': due, 'speed': self.progress.measure(step)}
    state = self.experiment.evaluator.observe_sources(state)
    self.folder.save(state, step, unlogged)


def _explain_nonfinite(
  fetch: Callable[[], dict[str, Any]], folder: RunFolder
) -> dict[str, Any]:
  """Calls `fetch`; its refusal says what is kept and what may help."""
  try:
    return fetch()
  except NonFiniteError as error:
    raise NonFiniteError(
      f'{error} Training stops; {folder.checkpoints.describe()}. A smaller '
      'learning_rate or smaller weights mu_* may help: with '
      f"--from='{folder.path}' and a new --workdir a run of other values goes "
      'on from there. on_nonfinite=skip goes on here and leaves such steps out.'
    ) from None
