"""How far each of several runs agrees with the mean prediction of all."""

import gc
import json
import pathlib
from collections.abc import Mapping

import jax

from experiments.runs.descriptions import check_finished
from moda_jax.data.domains import Domains
from moda_jax.errors import UserError
from moda_jax.files.atomic import write_whole
from moda_jax.selection.agreement import AGREEMENT
from moda_jax.selection.ranking import Candidate, rank
from moda_jax.training.candidates import predict_target
from moda_jax.training.recorded import read_recorded
from moda_jax.training.run_folder import read_metrics
from moda_jax.training.trained import load_trained

Task = tuple[str, int]  # target and seed
Agreements = dict[Task, dict[str, float]]  # by name of the run


def measure(
  folders: Mapping[str, pathlib.Path], opened: dict[str, Domains]
) -> dict[str, float]:
  """Returns the agreement of each run that has not collapsed, by its name.

  Args:
    folders: of runs of one target, by name.
    opened: data that was opened before, to which theirs is added.

  Raises:
    UserError: a folder has no finished run, or fewer than three runs have not
      collapsed.
  """
  for folder in folders.values():
    config, _, origins = read_recorded(folder)
    check_finished(folder, config, origins, read_metrics(folder))
  predicted = []
  for name, folder in folders.items():
    probabilities = predict_target(load_trained(folder), opened)
    predicted.append(Candidate(name, {}, probabilities))
    # Of hundreds of runs, neither all parameters nor all programs have room.
    jax.clear_caches()
    gc.collect()
  return rank(predicted, AGREEMENT).scores[AGREEMENT]


def read(path: pathlib.Path) -> Agreements:
  """Returns what `write` has written; nothing where there is no file."""
  if not path.exists():
    return {}
  try:
    found = json.loads(path.read_text())
    return {(x['target'], x['seed']): dict(x['agreement']) for x in found}
  except (ValueError, TypeError, KeyError) as error:
    raise UserError(
      f'{path} does not hold agreements ({error}): remove it.'
    ) from error


def write(agreements: Agreements, path: pathlib.Path) -> pathlib.Path:
  """Writes agreements; returns the path."""
  made = [
    {'target': target, 'seed': seed, 'agreement': found}
    for (target, seed), found in agreements.items()
  ]
  path.parent.mkdir(parents=True, exist_ok=True)
  with write_whole(path) as file:
    file.write(json.dumps(made, indent=1) + '\n')
  return path
