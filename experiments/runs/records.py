"""Lines of finished runs in files, and what two runs have in common."""

import fcntl
import functools
import json
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

import ml_collections

from experiments.runs.requests import Request
from experiments.runs.scales import SETTINGS, Setting
from moda_jax.errors import UserError
from moda_jax.training import options
from moda_jax.training.config_files import get_config
from moda_jax.training.recorded import flatten

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


def flat_config(config: ml_collections.ConfigDict) -> dict[str, Any]:
  """Returns what the run reads of its config, by full name."""
  values = json.loads(options.prune(config).to_json())
  values.pop('search', None)
  return flatten(values)


def without_folders(config: dict[str, Any]) -> dict[str, Any]:
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
  return setting.title_with(format_lengths(lines))


def format_lengths(lines: Iterable[Line]) -> str:
  """Returns the lengths of runs as text, such as `2 epochs or 5 epochs`."""
  lengths = {f'{line["steps"] / line["epoch_steps"]:.3g}' for line in lines}
  texts = [f'{length} epoch{"s" * (length != "1")}' for length in lengths]
  return ' or '.join(sorted(texts))


def has_run(lines: Iterable[Line], request: Request) -> bool:
  """Returns whether a run of the same config is among the lines."""
  return find_run(lines, request) is not None


def find_run(lines: Iterable[Line], request: Request) -> Line | None:
  """Returns the line of a run of the request's config, if there is one."""
  return next(iter(find_runs(lines, [request])), None)


def find_runs(lines: Iterable[Line], requests: Iterable[Request]) -> list[Line]:
  """Returns all lines of runs of the requests' configs, in their order."""
  wanted = [_describe(request) for request in requests]
  return [
    line for line in lines if any(_is_same(line, other) for other in wanted)
  ]


def _describe(request: Request) -> Line:
  """Returns what the line of a request's run has in common with it."""
  config = request.config()
  return {
    'target': request.target,
    'method': request.method,
    'seed': request.seed,
    'sources': list(config.data.sources),
    'config': flat_config(config),
  }


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
