"""Finished runs in folders, sorted by what a choice among them is about."""

import collections
import gc
import glob
import json
import os
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax

from experiments.runs.descriptions import check_finished
from moda_jax.data.domains import labelled_name
from moda_jax.data.load import Domains
from moda_jax.errors import UserError
from moda_jax.selection.ranking import Candidate
from moda_jax.training import candidates
from moda_jax.training.metrics_file import Line
from moda_jax.training.recorded import flatten, read_recorded
from moda_jax.training.run_folder import read_metrics
from moda_jax.training.trained import load_trained


class Group(NamedTuple):
  """Runs among which to choose: of the same data and network.

  Attributes:
    experiment: the config's, with what tells its networks apart.
    target: the target, with the sources where these differ.
    folders: of the runs.
  """

  experiment: str
  target: str
  folders: list[pathlib.Path]


class Judged(NamedTuple):
  """A run as a candidate, without its parameters.

  Attributes:
    candidate: its scores and predictions.
    accuracy: on the target, a fraction.
    evaluations: the lines of metrics that have criteria.
  """

  candidate: Candidate
  accuracy: float
  evaluations: list[Line]


def find_runs(patterns: Sequence[str]) -> list[pathlib.Path]:
  """Returns the folders of runs in what the patterns name, each once."""
  found = {
    folder
    for pattern in patterns
    for name in glob.glob(pattern)
    for folder in _walk(pathlib.Path(name))
  }
  if not found:
    raise UserError(f'{", ".join(patterns) or "no folder"}: there is no run.')
  return sorted(found)


def _walk(folder: pathlib.Path) -> Iterator[pathlib.Path]:
  """Yields the folders of runs in a folder, which may be one itself."""
  for parent, below, files in os.walk(folder.resolve()):
    if 'config.json' in files:
      below.clear()  # checkpoints and pages, among which are no runs
      yield pathlib.Path(parent)


def group_runs(folders: Sequence[pathlib.Path]) -> list[Group]:
  """Sorts finished runs; says of others why they are left out."""
  keys: dict[str, dict[str, Any]] = {}
  members: dict[str, list[pathlib.Path]] = collections.defaultdict(list)
  for folder in folders:
    try:
      described = _describe(folder)
    except UserError as error:
      print(f'left out: {error}')
      continue
    key = json.dumps(described, sort_keys=True)
    keys[key] = described
    members[key].append(folder)
  known = list(keys.values())
  return [Group(*_label(keys[key], known), members[key]) for key in keys]


def _describe(folder: pathlib.Path) -> dict[str, Any]:
  """Returns what runs to choose among have in common.

  Raises:
    UserError: the run is not finished, cannot be read, has read labels of the
      target, or is of several seeds.
  """
  config, inputs, origins = read_recorded(folder)
  check_finished(folder, config, origins, read_metrics(folder))
  data = config.data
  if data.get('target_labels'):
    raise UserError(f'{folder} was trained on labels of the target.')
  if config.run.seeds > 1:
    raise UserError(
      f'{folder} has {config.run.seeds} seeds in one run, of which no model '
      'has the accuracy.'
    )
  network = flatten({'network': json.loads(config.network.to_json())})
  return {
    'experiment': config.experiment,
    'target': data.target,
    'dataset': data.datasets.get(data.target, ''),
    'classes': list(inputs.classes) if inputs else [],
    'sources': [s for s in data.sources if s != labelled_name(data.target)],
    'network': {k: v for k, v in network.items() if not k.endswith('cache')},
  }


def _label(
  own: dict[str, Any], known: Sequence[dict[str, Any]]
) -> tuple[str, str]:
  """Returns names of experiment and target that tell the groups apart."""
  alike = [k for k in known if k['experiment'] == own['experiment']]
  differing = [
    f'{name.rpartition(".")[2]}={value}'
    for name, value in own['network'].items()
    if any(k['network'].get(name) != value for k in alike)
  ]
  same = [k for k in alike if k['target'] == own['target']]
  target = own['target']
  if any(k['dataset'] != own['dataset'] for k in same):
    target += f' of {own["dataset"]}'
  if any(k['sources'] != own['sources'] for k in same):
    target += f' from {"+".join(own["sources"])}'
  experiment = own['experiment'] or 'own data'
  return ', '.join([experiment, *differing]), target


def judge_runs(group: Group) -> list[Judged]:
  """Returns the runs of a group, of which only what is needed is kept."""
  opened: dict[str, Domains] = {}
  found = []
  for folder in group.folders:
    try:
      run = candidates.make_candidate(load_trained(folder), opened)
    except UserError as error:
      print(f'left out: {error}')
      continue
    if run.oracle is None or run.trained.model.method.caution:
      caution = run.trained.model.method.caution or 'no accuracy is known'
      print(f'left out: {folder}: {caution}')
      continue
    print(f'{group.experiment}, {group.target}: {folder}', flush=True)
    found.append(Judged(run.candidate, run.oracle, run.evaluations))
    del run
    # Of hundreds of runs, neither all parameters nor all programs have room.
    jax.clear_caches()
    gc.collect()
  return found
