"""A finished run's line, from what its folder has."""

import datetime
import pathlib
import re
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

import ml_collections

from experiments.runs.records import Line, flat_config, without_folders
from experiments.runs.scales import Setting
from moda_jax.errors import UserError
from moda_jax.objectives import find_method
from moda_jax.objectives import metrics as names
from moda_jax.training import judging
from moda_jax.training.evaluation import ACCURACY, seed_accuracy
from moda_jax.training.kept import order_evaluations
from moda_jax.training.progress import STEPS_PER_SECOND
from moda_jax.training.recorded import read_recorded
from moda_jax.training.run_folder import read_metrics

_ROOT = pathlib.Path(__file__).parents[2]


def describe_run(
  folder: pathlib.Path,
  setting: Setting,
  seconds: float | None = None,
  commit: str | None = None,
) -> list[Line]:
  """Returns the line of a finished run, or one for each of its seeds.

  Args:
    folder: of the run.
    setting: what it belongs to; a run of another experiment is refused.
    seconds: how long the process ran that finished it, where that is known.
    commit: of the code that trained it, where that is known.
  """
  config, inputs, origins = read_recorded(folder)
  lines = read_metrics(folder)
  total = check_finished(folder, config, origins, lines)
  last = lines[-1]
  if ACCURACY not in last:
    raise UserError(
      f"{folder}: the labels of the target '{config.data.target}' are not "
      'known, so there is no accuracy.'
    )
  classes = len(inputs.classes) if inputs else 0
  chosen = order_evaluations(lines, config.run.selection, classes)[:1]
  used = next((line for line in lines if line['step'] in chosen), last)
  method = find_method(config.objective)
  common = {
    'experiment': setting.experiment,
    'scale': setting.scale,
    'target': config.data.target,
    'method': config.objective.method,
    'sources': list(config.data.sources),
  }
  rest = {
    'steps': total,
    'epoch_steps': _epoch_steps(config, origins),
    'train_seconds': _train_seconds(lines),
    'seconds': seconds,
    'finished': _modified(folder / 'metrics.jsonl'),
    'commit': commit,
    'caution': _caution(method, config),
    'curve': _curve(lines),
    **({'criteria': _criteria(used, classes)} if config.run.seeds == 1 else {}),
    'origins': origins,
    'config': without_folders(flat_config(config)),
  }
  seeds = range(config.run.seed, config.run.seed + config.run.seeds)
  made = []
  for seed in seeds:
    name = seed_accuracy(seed) if len(seeds) > 1 else ACCURACY
    made.append({**common, 'seed': seed, 'accuracy': used[name], **rest})
  return made


def check_finished(
  folder: pathlib.Path,
  config: ml_collections.ConfigDict,
  origins: Mapping[str, str],
  lines: Sequence[Mapping[str, float]],
) -> int:
  """Returns the number of a run's steps; refuses one that is not finished.

  Args:
    folder: of the run, for the message.
    config: of the run.
    origins: of its data, as recorded.
    lines: of its metrics.
  """
  total = config.run.steps or config.run.epochs * _epoch_steps(config, origins)
  last = lines[-1]['step'] if lines else 0
  if last != total:
    raise UserError(f'{folder} is not finished: step {last} of {total}.')
  return total


def _epoch_steps(
  config: ml_collections.ConfigDict, origins: Mapping[str, str]
) -> int:
  """Returns the steps per epoch, from the sizes that the run has recorded."""
  spec = find_method(config.objective).batch_spec
  read = list(config.data.sources) if spec.sources else []
  if spec.has_target:
    read.append(config.data.target)
  sizes = [re.search(r'(\d+) examples', origins.get(name, '')) for name in read]
  largest = max(int(size.group(1)) for size in sizes if size)
  return -(-largest // config.data.batch_size)


def _caution(method: Any, config: ml_collections.ConfigDict) -> str:
  """Returns what must be said about the figure; see `Method.caution`."""
  sources = tuple(config.data.sources)
  return method(None, sources, None).caution


def _train_seconds(lines: Sequence[Mapping[str, float]]) -> float:
  """Returns the time of all steps, without start and evaluations."""
  total, before = 0.0, 0.0
  for line in lines:
    if STEPS_PER_SECOND in line:  # else it was evaluated again
      total += (line['step'] - before) / line[STEPS_PER_SECOND]
    before = line['step']
  return round(total, 1)


def _curve(lines: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
  """Returns accuracy, class losses and source weights at every evaluation."""
  evaluated = [line for line in lines if ACCURACY in line]
  kept = [
    name
    for name in evaluated[-1]
    if name.startswith((ACCURACY, f'{names.CLASS}/', f'{names.ALPHA}/'))
    and all(name in line for line in evaluated)  # not if evaluated again
  ]
  curve = {'step': [line['step'] for line in evaluated]}
  return curve | {
    name: [round(line[name], 5) for line in evaluated] for name in kept
  }


def _criteria(line: Mapping[str, float], classes: int) -> dict[str, float]:
  """Returns what was said of an evaluation without labels, by criterion.

  Beside them are the number of classes and of those that the mean prediction
  lies on. Nothing is returned where the evaluation was not judged.
  """
  found = {
    name.removeprefix(f'{judging.PREFIX}/'): value
    for name, value in line.items()
    if name.startswith(f'{judging.PREFIX}/')
  }
  return {**found, 'classes': classes} if found else {}


def _modified(path: pathlib.Path) -> str:
  moment = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC)
  return moment.isoformat(timespec='seconds')


def find_commit() -> str | None:
  """Returns the commit of this code; with a + where files have changed."""
  git = ['git', '-C', str(_ROOT)]
  try:
    ran = [
      subprocess.run([*git, *command], capture_output=True, text=True)
      for command in (
        ('rev-parse', 'HEAD'),
        ('status', '--porcelain', '--', 'moda_jax', 'configs'),
      )
    ]
  except OSError:  # git is not installed
    return None
  if ran[0].returncode:
    return None
  return ran[0].stdout.strip() + ('+' if ran[1].stdout.strip() else '')
