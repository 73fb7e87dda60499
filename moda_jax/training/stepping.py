"""The steps of a run: trained, logged, saved, and left when asked to."""

import time

from moda_jax.errors import Interrupted, Terminated
from moda_jax.training import processes
from moda_jax.training.experiment import Experiment
from moda_jax.training.interruption import Stop
from moda_jax.training.kept import Keeper
from moda_jax.training.progress import MetricsBuffer, Progress
from moda_jax.training.run_folder import RunFolder
from moda_jax.training.saved_states import Saved
from moda_jax.training.step_log import OnLog, StepLog
from moda_jax.training.train_step import TrainState


def take_steps(
  experiment: Experiment,
  folder: RunFolder,
  saved: Saved,
  progress: Progress,
  stop: Stop,
  on_log: OnLog | None,
  keeper: Keeper,
) -> TrainState:
  """Takes the steps that are left; returns the state after the last one.

  Args:
    experiment: what is trained.
    folder: of the run.
    saved: what the run goes on from.
    progress: measures and shows.
    stop: asks to save and leave.
    on_log: see `StepLog`.
    keeper: knows the best evaluation so far, whose checkpoint is kept.
  """
  run, total, state = experiment.config.run, experiment.total_steps, saved.state
  start, skips = int(state.step), run.on_nonfinite == 'skip'
  buffer = MetricsBuffer(saved.unlogged, run.max_skipped if skips else None)
  log = StepLog(experiment, folder, progress, buffer, keeper, on_log)
  if saved.unlogged.get('due'):  # it was stopped before the line was written
    state = log.write(start, state, saved.unlogged['speed'])
  saved_at = time.monotonic()
  agreement = processes.Agreement(experiment.devices)

  def read_state() -> TrainState:
    return state  # as it is when this is called

  for step, batch in enumerate(experiment.feed(start, read_state), start + 1):
    state, metrics = experiment.train_step(state, batch)
    buffer.add(step, metrics)
    late = 0 < 60 * run.checkpoint_minutes < time.monotonic() - saved_at
    # Looked at once: it may be set at any moment.
    stopping, terminated, late = agreement.ask(
      stop.is_set(), stop.is_terminated, late
    )
    saving = step % run.checkpoint_every == 0 or step == total
    # At a line of metrics, so that the lines do not depend on the clock.
    if step % run.log_every == 0:
      saving |= late
    due = step % run.log_every == 0 or log.evaluates(step) or saving
    progress.advance(step, metrics, reported=due)
    if stopping:
      # At once: the line that is due, if any, is written by who goes on.
      log.save_unlogged(step, state, due)
      raise interrupted(step, experiment, folder, terminated)
    # Nothing is saved that was not seen to be finite.
    if due:
      state = log.write(step, state, progress.measure(step), saving)
    if saving or keeper.best == step:
      folder.save(state, step, buffer.to_unlogged())
      saved_at = time.monotonic()
      agreement.forget()
  return state


def interrupted(
  step: int, experiment: Experiment, folder: RunFolder, terminated: bool
) -> Interrupted:
  """Returns the error that a stopped run ends in, once it is saved."""
  folder.checkpoints.wait()  # what cannot be saved is not said to be
  kind = Terminated if terminated else Interrupted
  return kind(
    f'stopped at step {step} of {experiment.total_steps} and saved in '
    f'{folder.path}; the same command resumes'
  )
