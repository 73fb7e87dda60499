"""The one training loop, for every method and every experiment."""

import contextlib
import logging
import os
import pathlib
from collections.abc import Iterator

import ml_collections

from moda_jax.data.domains import Domains
from moda_jax.errors import ProcessLost, UserError
from moda_jax.training import devices as devices_lib
from moda_jax.training import display, options, processes
from moda_jax.training.backbone_file import keep_backbone
from moda_jax.training.compilation_cache import use_compilation_cache
from moda_jax.training.experiment import Experiment
from moda_jax.training.interruption import Stop, catch_signals
from moda_jax.training.kept import GONE, NONE_CHOSEN, Keeper
from moda_jax.training.out_of_memory import name_memory
from moda_jax.training.outcome import (
  Outcome,
  log_outcome,
  summarise,
)
from moda_jax.training.progress import Progress
from moda_jax.training.recorded import (
  as_folder,
)
from moda_jax.training.reopened import first_state, open_folder
from moda_jax.training.run_folder import RunFolder
from moda_jax.training.run_lock import RunLock
from moda_jax.training.saved_states import Saved
from moda_jax.training.started_from import check_origin, take_over
from moda_jax.training.step_log import OnLog
from moda_jax.training.stepping import interrupted, take_steps
from moda_jax.training.train_step import TrainState

_log = logging.getLogger(__name__)


def train(
  config: ml_collections.ConfigDict,
  workdir: str | os.PathLike,
  data: Domains | None = None,
  devices: int | None = None,
  on_log: OnLog | None = None,
  start_from: str | os.PathLike | None = None,
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
    start_from: the folder of another run, whose last state a new run starts
      with, see `started_from.take_over`.

  Raises:
    UserError: the config, its data or the workdir cannot be used.
    NonFiniteError: training diverged; the last good checkpoint is kept.
    Interrupted: on SIGINT, once everything is saved; `Terminated`, which is
      one too, on SIGTERM.
    ProcessLost: another process of the run has ended.
  """
  path = as_folder(workdir)
  devices_lib.check_devices()  # before anything asks JAX
  with name_memory(config), RunLock(path.absolute()) as lock:
    with processes.fail_together():
      origin = None if start_from is None else check_origin(start_from, path)
      experiment = _prepare(config, lock, data, devices)
    state = _train(experiment, lock, workdir, on_log, origin)
    outcome = summarise(experiment, state, workdir)
  log_outcome(outcome)
  return outcome


def _prepare(
  config: ml_collections.ConfigDict,
  lock: RunLock,
  data: Domains | None,
  devices: int | None,
) -> Experiment:
  """Refuses what cannot be trained, as soon as can be."""
  settings = options.check(config)
  use_compilation_cache(settings.run.compilation_cache)
  devices = devices_lib.choose_devices(
    settings.data.batch_size, devices or settings.run.devices
  )
  if lock.is_known:  # a run's folder: refused before data is read
    with contextlib.suppress(OSError):  # its message comes with the others
      lock.take()
  return Experiment(config, data, devices)


def _train(
  experiment: Experiment,
  lock: RunLock,
  workdir: str | os.PathLike,
  on_log: OnLog | None,
  origin: pathlib.Path | None,
) -> TrainState:
  opened = open_folder(workdir, experiment, lock, origin=origin)
  with catch_signals() as stop, _closing(opened) as folder:
    if experiment.backbone is not None and processes.is_first():
      keep_backbone(workdir, experiment.backbone)
    state = _run(experiment, folder, stop, on_log)
    # During the last evaluation or save.
    if processes.any_of_all(stop.is_set()):
      terminated = processes.any_of_all(stop.is_terminated)
      raise interrupted(experiment.total_steps, experiment, folder, terminated)
  return devices_lib.bring_home(state)


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


def _run(
  experiment: Experiment,
  folder: RunFolder,
  stop: Stop,
  on_log: OnLog | None,
) -> TrainState:
  total = experiment.total_steps
  saved = folder.restore(first_state(experiment))
  if folder.started_from is not None and not int(saved.state.step):
    saved = Saved(_start_from(experiment, folder, folder.started_from), {})
  start = int(saved.state.step)
  _refuse_shorter(start, experiment, folder)
  folder.write_record()
  folder.prepare_metrics(saved)
  _announce(experiment, start)
  with display.open_bar(total) as bar:
    images = experiment.images_per_step
    progress = Progress(experiment.method, start, total, images, bar)
    keeper = _make_keeper(experiment, folder)
    folder.checkpoints.protect(keeper.best)
    state = take_steps(
      experiment, folder, saved, progress, stop, on_log, keeper
    )
  _complete_metrics(experiment, folder, state)
  return _take_kept(experiment, folder, state)


def _make_keeper(experiment: Experiment, folder: RunFolder) -> Keeper:
  lines = folder.read_metrics() if processes.is_first() else []
  classes = len(experiment.model.inputs.classes)
  return Keeper(experiment.config.run.selection, classes, lines)


def _take_kept(
  experiment: Experiment, folder: RunFolder, state: TrainState
) -> TrainState:
  """Returns the state of the best evaluation, where a criterion chooses."""
  criterion = experiment.config.run.selection
  if not criterion:
    return state
  best = _make_keeper(experiment, folder).best
  if not best:
    _log.warning('%s', NONE_CHOSEN.format(criterion))
    return state
  if best != experiment.total_steps:
    folder.checkpoints.wait()
    saved = folder.checkpoints.restore(state, [best])
    state = state if saved is None else saved.state
  if int(state.step) != best:
    _log.warning('%s', GONE.format(best, criterion))
    return state
  _log.info(
    'taken: step %d of %d, the best evaluation by %s',
    int(state.step),
    experiment.total_steps,
    criterion,
  )
  return state


def _start_from(
  experiment: Experiment, folder: RunFolder, origin: pathlib.Path
) -> TrainState:
  """Returns another run's state, recorded as this one's first."""
  total = experiment.total_steps
  state, fits = take_over(experiment.initial_state, origin, total)
  _log.info(
    'starting from step %d of %s, %s',
    int(state.step),
    origin,
    "with its optimizer's state" if fits else 'with a new optimizer',
  )
  state = devices_lib.replicate(state, experiment.devices)
  folder.record_start(state)
  return state


def _complete_metrics(
  experiment: Experiment, folder: RunFolder, state: TrainState
) -> None:
  """Evaluates a finished run again where its last line has been lost."""
  lines = folder.read_metrics() if processes.is_first() else []
  is_there = bool(lines) and lines[-1]['step'] == experiment.total_steps
  if processes.any_of_all(is_there):
    return
  _log.warning('the last line of metrics is missing: evaluating again')
  state = experiment.evaluator.observe_sources(state)
  evaluator = experiment.evaluator
  found = evaluator.accuracies(state) | evaluator.judge(state)
  folder.write_metrics(experiment.total_steps, found)


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
