"""Finished runs as lines of JSON, and what two runs have in common."""

import datetime
import fcntl
import functools
import json
import pathlib
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import ml_collections

from experiments.runs.requests import Request
from experiments.runs.scales import SETTINGS, Setting
from moda_jax.errors import UserError
from moda_jax.objectives import find_method
from moda_jax.objectives import metrics as names
from moda_jax.training import judging, options
from moda_jax.training.config_files import get_config
from moda_jax.training.evaluation import ACCURACY, seed_accuracy
from moda_jax.training.kept import order_evaluations
from moda_jax.training.progress import STEPS_PER_SECOND
from moda_jax.training.recorded import flatten, read_recorded
from moda_jax.training.run_folder import read_metrics

Line = dict[str, Any]
_PLACES = (
  'data.data_dir',
  'network.pretrained',
  'network.feature_cache',
  'run.compilation_cache',
)
# The places of files, and how often something is written, change no result.
_NOT_COMPARED = (
  *_PLACES,
  'experiment',
  'data.sources',
  'data.target',
  'objective.method',
  'run.seed',
  'run.seeds',
  'run.log_every',
  'run.eval_every',
  'run.checkpoint_every',
  'run.checkpoint_minutes',
  'run.eval_batch_size',
  'run.keep_checkpoints',
)
_LENGTH = {'run.steps', 'run.epochs'}
_IDENTITY = ('target', 'method', 'seed', 'sources')
_ROOT = pathlib.Path(__file__).parents[2]


def read_lines(path: pathlib.Path) -> list[Line]:
  """Returns the lines of a file of results; none where there is no file."""
  if not path.exists():
    return []
  try:
    lines = [json.loads(text) for text in path.read_text().splitlines()]
    if not all(isinstance(line, dict) and 'accuracy' in line for line in lines):
      raise ValueError('not lines of runs')
  except ValueError as error:
    raise UserError(
      f'{path} is not a file of results ({error}): remove it or choose another '
      '--results.'
    ) from error
  return lines


def append_lines(path: pathlib.Path, lines: Iterable[Line]) -> None:
  """Appends lines, whole even where several programs do so at a time."""
  path.parent.mkdir(parents=True, exist_ok=True)
  text = ''.join(json.dumps(line) + '\n' for line in lines)
  with path.open('a') as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    file.write(text)


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
      'known, so that there is no accuracy.'
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
    'config': _without_folders(flat_config(config)),
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
  """Returns accuracy and source weights at every evaluation, by name."""
  evaluated = [line for line in lines if ACCURACY in line]
  kept = [
    name
    for name in evaluated[-1]
    if name.startswith((ACCURACY, f'{names.ALPHA}/'))
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


def flat_config(config: ml_collections.ConfigDict) -> dict[str, Any]:
  """Returns what the run reads of its config, by full name."""
  values = json.loads(options.prune(config).to_json())
  values.pop('search', None)
  return flatten(values)


def _without_folders(config: dict[str, Any]) -> dict[str, Any]:
  """Keeps the names of files and folders: where they were says nothing."""
  places = {
    name: pathlib.PurePath(config[name]).name
    for name in _PLACES
    if config.get(name)
  }
  return config | places


def find_differences(
  config: Mapping[str, Any], base: Mapping[str, Any]
) -> dict[str, Any]:
  """Returns the values of `config` that differ from `base`, by full name.

  What only one of them has is a value that came or went with a version; it
  counts where it is not the default. A length in steps replaces one in epochs.
  """
  defaults = _defaults()
  found = {}
  for name in {**config, **base}:
    if name in _NOT_COMPARED:
      continue
    value = config.get(name, defaults.get(name))
    if value != base.get(name, defaults.get(name)):
      found[name] = value
  return {k: v for k, v in found.items() if k not in _LENGTH or v}


@functools.cache
def _defaults() -> dict[str, Any]:
  return flatten(json.loads(options.base_config().to_json()))


def find_values(line: Line, setting: Setting) -> dict[str, Any]:
  """Returns how a run's config differs from its setting, by short name."""
  differing = _differing(line, setting)
  values = {k.rpartition('.')[2]: v for k, v in sorted(differing.items())}
  base = _setting_config(
    setting.experiment, setting.scale, line['target'], line['method']
  )
  if list(line['sources']) != list(base['data.sources']):
    values['sources'] = '+'.join(line['sources'])
  return values


def _differing(line: Line, setting: Setting) -> dict[str, Any]:
  base = _setting_config(
    setting.experiment, setting.scale, line['target'], line['method']
  )
  return find_differences(line['config'], base)


@functools.cache
def _setting_config(
  experiment: str, scale: str, target: str, method: str
) -> dict[str, Any]:
  setting = SETTINGS[experiment, scale]
  pairs = [f'{name}={value}' for name, value in setting.values.items()]
  base = f'{setting.config}:{target},method={method}'
  config = get_config(','.join([base, *pairs]))
  config.data.datasets.update(setting.datasets)
  return flat_config(config)


def make_title(setting: Setting, lines: Iterable[Line]) -> str:
  """Returns the setting's title with the length of these runs."""
  lengths = {
    f'{line["steps"] / line["epoch_steps"]:.3g} epochs' for line in lines
  }
  return setting.title_with(' or '.join(sorted(lengths)))


def has_run(lines: Iterable[Line], request: Request) -> bool:
  """Returns whether a run of the same config is among the lines."""
  return find_run(lines, request) is not None


def find_run(lines: Iterable[Line], request: Request) -> Line | None:
  """Returns the line of a run of the request's config, if there is one."""
  config = request.config()
  wanted = {
    'target': request.target,
    'method': request.method,
    'seed': request.seed,
    'sources': list(config.data.sources),
    'config': flat_config(config),
  }
  return next((line for line in lines if _is_same(line, wanted)), None)


def has_line(lines: Iterable[Line], wanted: Line) -> bool:
  """Returns whether a line of the same run is among the lines."""
  return any(_is_same(line, wanted) for line in lines)


def _is_same(line: Line, wanted: Line) -> bool:
  return (
    all(line[key] == wanted[key] for key in _IDENTITY)
    and not find_differences(line['config'], wanted['config'])
    and not find_differences(wanted['config'], line['config'])
  )


def check_scale(line: Line, setting: Setting, folder: pathlib.Path) -> None:
  """Refuses a run whose data or network are not those of the scale."""
  base = get_config(setting.config)
  found = line['config']['experiment']
  if found != base.experiment:
    raise UserError(
      f"{folder} is a run of '{found}', not of '{base.experiment}'."
    )
  for name, value in _differing(line, setting).items():
    section, _, leaf = name.partition('.')
    if section == 'data' or leaf in setting.values or name == 'network.name':
      raise UserError(
        f'{folder} is not of the scale {setting.scale}: its {name} is '
        f'{value!r}.'
      )


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
