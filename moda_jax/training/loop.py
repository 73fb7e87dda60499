"""The one training loop, for every method and every experiment."""

import contextlib
import hashlib
import logging
import os
import pathlib
import threading
import time
from collections.abc import Callable, Iterator

import ml_collections

from moda_jax.data.domains import Domains
from moda_jax.errors import (
  Interrupted,
  NonFiniteError,
  ProcessLost,
  UserError,
)
from moda_jax.training import devices as devices_lib
from moda_jax.training import display, options, processes
from moda_jax.training.backbone_file import keep_backbone
from moda_jax.training.compilation_cache import use_compilation_cache
from moda_jax.training.evaluation import ACCURACY
from moda_jax.training.experiment import Experiment
from moda_jax.training.interruption import catch_signals
from moda_jax.training.outcome import (
  Outcome,
  log_accuracies,
  log_outcome,
  summarise,
)
from moda_jax.training.progress import MetricsBuffer, Progress
from moda_jax.training.recorded import (
  as_folder,
  describe_compared,
  to_record,
)
from moda_jax.training.run_folder import RunFolder
from moda_jax.training.train_step import TrainState

_log = logging.getLogger(__name__)


OnLog = Callable[[Experiment, pathlib.Path], None]


def train(
  config: ml_collections.ConfigDict,
  workdir: str | os.PathLike,
  data: Domains | None = None,
  devices: int | None = None,
  on_log: OnLog | None = None,
) -> Outcome:
  """Trains from the last checkpoint in `workdir` to the last step.

  After `jax.distributed.initialize`, all processes must call this alike. They
  train one run together; the first one writes its folder, which all must see.

  Args:
    config: see `moda_jax.training.options.base_config`.
    workdir: the run's folder; new, or of an earlier run of the same config.
    data: whole domains in memory, instead of those that the config names.
    devices: how many to use instead of `run.devices`.
    on_log: called with the experiment and the folder after every line of
      metrics, such as `moda_jax.report.PageWriter()`, in the first process.

  Raises:
    UserError: the config, its data or the workdir cannot be used.
    NonFiniteError: training diverged; the last good checkpoint is kept.
    Interrupted: on SIGINT or SIGTERM, once everything is saved.
    ProcessLost: another process of the run has ended.
  """
  devices_lib.check_devices()  # before anything asks JAX
  with processes.fail_together():
    experiment = _prepare(config, workdir, data, devices)
  with (
    catch_signals() as stop,
    _closing(open_folder(workdir, experiment)) as folder,
  ):
    if experiment.backbone is not None and processes.is_first():
      keep_backbone(workdir, experiment.backbone)
    state = _run(experiment, folder, stop, on_log)
    # During the last evaluation or save.
    if processes.any_of_all(stop.is_set()):
      raise _interrupted(experiment.total_steps, experiment, folder)
  state = devices_lib.bring_home(state)
  outcome = summarise(experiment, state, workdir)
  log_outcome(outcome)
  return outcome


def _prepare(
  config: ml_collections.ConfigDict,
  workdir: str | os.PathLike,
  data: Domains | None,
  devices: int | None,
) -> Experiment:
  """Refuses what cannot be trained, as soon as can be."""
  as_folder(workdir)
  settings = options.check(config)
  use_compilation_cache(settings.run.compilation_cache)
  devices = devices_lib.choose_devices(
    settings.data.batch_size, devices or settings.run.devices
  )
  return Experiment(config, data, devices)


@contextlib.contextmanager
def _closing(folder: RunFolder) -> Iterator[RunFolder]:
  """Closes the folder at the end, unless that would wait for a lost process."""
  lost = False
  try:
    with processes.notice_loss():
      yield folder
  except ProcessLost:
    lost = True
    raise
  finally:
    if not lost:
      folder.close()


def open_folder(
  workdir: str | os.PathLike, experiment: Experiment
) -> RunFolder:
  """Opens the folder of an experiment's run, or makes it."""
  record = to_record(
    experiment.config,
    experiment.origins,
    experiment.model.inputs,
    experiment.domains.fingerprints(),
  )
  digest = hashlib.sha256(describe_compared(record).encode()).hexdigest()
  processes.check_alike(digest, 'config or data')
  return RunFolder(workdir, record, experiment.depends_on_length)


def evaluate(
  config: ml_collections.ConfigDict,
  workdir: str | os.PathLike,
  data: Domains | None = None,
) -> float:
  """Returns the target accuracy of the last checkpoint in `workdir`.

  Of several seeds it is their mean.
  """
  experiment, state = restore(config, workdir, data)
  if experiment.domains.test.labels is None:
    raise UserError(
      f"The labels of the target '{config.data.target}' are not known: there "
      'is nothing to evaluate on; --mode=predict writes what is predicted.'
    )
  state = experiment.evaluator.observe_sources(state)
  accuracies = experiment.evaluator.accuracies(state)
  log_accuracies(experiment, accuracies, int(state.step))
  return accuracies[ACCURACY]


def restore(
  config: ml_collections.ConfigDict,
  workdir: str | os.PathLike,
  data: Domains | None = None,
) -> tuple[Experiment, TrainState]:
  """Returns a run in `workdir` and the state of its last checkpoint."""
  if not (as_folder(workdir) / 'config.json').exists():
    raise UserError(f"--workdir='{workdir}' does not hold a run.")
  devices_lib.check_devices()  # before anything asks JAX
  with processes.fail_together():
    experiment = Experiment(config, data)
  with contextlib.closing(open_folder(workdir, experiment)) as folder:
    state = folder.restore(_first_state(experiment))
  if int(state.step) == 0:
    raise UserError(f"--workdir='{workdir}' does not hold a checkpoint yet.")
  return experiment, state


def _run(
  experiment: Experiment,
  folder: RunFolder,
  stop: threading.Event,
  on_log: OnLog | None,
) -> TrainState:
  total = experiment.total_steps
  state = folder.restore(_first_state(experiment))
  start = int(state.step)
  _refuse_shorter(start, experiment, folder)
  folder.write_record()
  folder.forget_metrics_after(start)
  _announce(experiment, start)
  with display.open_bar(total) as bar:
    images = experiment.images_per_step
    progress = Progress(experiment.method, start, total, images, bar)
    return _take_steps(experiment, folder, state, progress, stop, on_log)


def _first_state(experiment: Experiment) -> TrainState:
  return devices_lib.replicate(experiment.initial_state, experiment.devices)


def _refuse_shorter(
  start: int, experiment: Experiment, folder: RunFolder
) -> None:
  if start > experiment.total_steps:
    raise UserError(
      f"--workdir='{folder.path}' holds a run that is at step {start} already, "
      f'beyond the last one, {experiment.total_steps}. A shorter run needs a '
      'folder of its own.'
    )


def _announce(experiment: Experiment, start: int) -> None:
  """Says what is about to be trained, before anything takes long."""
  total, epoch = experiment.total_steps, experiment.epoch_steps
  if start == total:
    return
  _log.info(
    'training on %s from step %d to %d: %.1f epochs of %d steps, %d examples '
    'in each step',
    devices_lib.describe_devices(experiment.devices),
    start,
    total,
    (total - start) / epoch,
    epoch,
    experiment.images_per_step,
  )
  _log.info('compiling …')


def _take_steps(
  experiment: Experiment,
  folder: RunFolder,
  state: TrainState,
  progress: Progress,
  stop: threading.Event,
  on_log: OnLog | None,
) -> TrainState:
  run, total = experiment.config.run, experiment.total_steps
  start, buffer = int(state.step), MetricsBuffer()
  saved = time.monotonic()
  agreement = processes.Agreement(experiment.devices)
  for step, batch in enumerate(experiment.make_batches(start), start + 1):
    state, metrics = experiment.train_step(state, batch)
    buffer.add(step, metrics)
    late = 0 < 60 * run.checkpoint_minutes < time.monotonic() - saved
    # Looked at once: it may be set at any moment.
    stopping, late = agreement.ask(stop.is_set(), late)
    evaluating = step % run.eval_every == 0 or step == total
    saving = step % run.checkpoint_every == 0 or step == total or stopping
    # At a line of metrics, so that the lines do not depend on the clock.
    if step % run.log_every == 0:
      saving |= late
    logging_now = step % run.log_every == 0 or evaluating or saving
    progress.advance(step, metrics, reported=logging_now)
    # Nothing is saved that was not seen to be finite.
    if logging_now:
      averages = _average(buffer, folder) | progress.measure(step)
      if evaluating or saving:  # what is saved must be fit to predict with
        state = experiment.evaluator.observe_sources(state)
      if evaluating:
        averages |= experiment.evaluator.accuracies(state)
      progress.report(step, averages)
      folder.write_metrics(step, averages)
      if on_log is not None and step < total and processes.is_first():
        on_log(experiment, folder.path)
      progress.resume()
    if saving:
      folder.save(state, step)
      saved = time.monotonic()
      agreement.forget()
    if stopping:
      raise _interrupted(step, experiment, folder)
  return state


def _interrupted(
  step: int, experiment: Experiment, folder: RunFolder
) -> Interrupted:
  return Interrupted(
    f'stopped at step {step} of {experiment.total_steps} and saved in '
    f'{folder.path}; the same command resumes'
  )


def _average(buffer: MetricsBuffer, folder: RunFolder) -> dict[str, float]:
  try:
    return buffer.average()
  except NonFiniteError as error:
    raise NonFiniteError(
      f'{error} Training stops; {folder.checkpoints.describe()}. A smaller '
      'learning_rate or smaller weights mu_* may help.'
    ) from None
