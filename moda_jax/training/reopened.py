"""The folder of a run, opened again: what is in it, and how good it is."""

import hashlib
import os
import pathlib

import ml_collections

from moda_jax.data.domains import Domains
from moda_jax.errors import UserError
from moda_jax.training import devices as devices_lib
from moda_jax.training import processes, record_file
from moda_jax.training.evaluation import ACCURACY
from moda_jax.training.experiment import Experiment
from moda_jax.training.kept import find_preferred
from moda_jax.training.out_of_memory import name_memory
from moda_jax.training.outcome import evaluate_again, log_accuracies
from moda_jax.training.recorded import as_folder, describe_compared, to_record
from moda_jax.training.run_folder import RunFolder
from moda_jax.training.run_lock import RunLock
from moda_jax.training.saved_states import find_steps
from moda_jax.training.train_step import TrainState


def open_folder(
  workdir: str | os.PathLike,
  experiment: Experiment,
  lock: RunLock | None = None,
  reading: bool = False,
  origin: pathlib.Path | None = None,
) -> RunFolder:
  """Opens the folder of an experiment's run, or makes it.

  Args:
    workdir: the folder.
    experiment: what is trained.
    lock: see `RunFolder`.
    reading: see there.
    origin: the folder of the run whose state this one starts with.
  """
  record = to_record(
    experiment.config,
    experiment.origins,
    experiment.model.inputs,
    experiment.domains.fingerprints(),
    origin,
  )
  digest = hashlib.sha256(describe_compared(record).encode()).hexdigest()
  processes.check_alike(digest, 'config or data')
  length = experiment.depends_on_length
  return RunFolder(workdir, record, length, lock, reading)


def evaluate(
  config: ml_collections.ConfigDict,
  workdir: str | os.PathLike,
  data: Domains | None = None,
) -> float:
  """Returns the target accuracy of a run's checkpoint in `workdir`.

  It is the last one, or that which `run.selection` keeps. Of several seeds it
  is their mean.
  """
  with name_memory(config):
    experiment, state = restore(config, workdir, data)
    accuracies = evaluate_again(experiment, state)
  if not accuracies:
    raise UserError(
      f"The labels of the target '{config.data.target}' are not known: there "
      'is nothing to evaluate on; --mode=predict writes what is predicted.'
    )
  log_accuracies(experiment, accuracies, int(state.step))
  return accuracies[ACCURACY]


def restore(
  config: ml_collections.ConfigDict,
  workdir: str | os.PathLike,
  data: Domains | None = None,
) -> tuple[Experiment, TrainState]:
  """Returns a run in `workdir` and the state that it predicts with."""
  has_record = (as_folder(workdir) / record_file.FILE).exists()
  if not has_record and not find_steps(workdir):
    raise UserError(f"--workdir='{workdir}' does not hold a run.")
  devices_lib.check_devices()  # before anything asks JAX
  with processes.fail_together():
    experiment = Experiment(config, data)
  folder = open_folder(workdir, experiment, reading=True)
  preferred = find_preferred(folder.path, experiment.model)
  state = folder.restore(first_state(experiment), preferred).state
  if int(state.step) == 0:
    raise UserError(f"--workdir='{workdir}' does not hold a checkpoint yet.")
  return experiment, state


def first_state(experiment: Experiment) -> TrainState:
  """Returns the state that training starts with, on its devices."""
  return devices_lib.replicate(experiment.initial_state, experiment.devices)
