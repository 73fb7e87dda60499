"""What the commands of all studies share: flags, training, lines to draw."""

import pathlib
from collections.abc import Callable, Sequence
from typing import Any

from absl import flags

from experiments.runs import records
from experiments.runs.requests import Request, make_requests
from experiments.runs.runner import find_slots, train_missing
from experiments.runs.scales import EXPERIMENTS, SCALES, Setting, find_setting
from moda_jax.errors import UserError

Draw = Callable[[Setting, list[records.Line], pathlib.Path], list[pathlib.Path]]


def define_flags(
  experiment: str,
  scale: str = 'paper',
  epochs: int = 0,
  has_targets: bool = True,
) -> None:
  """Defines the flags that every study has.

  Args:
    experiment: the paper's, for this study.
    scale: the default.
    epochs: the default length; 0 takes the config's.
    has_targets: whether the study is of the targets that --targets names.
  """
  flags.DEFINE_enum('experiment', experiment, EXPERIMENTS, 'the experiment')
  flags.DEFINE_enum('scale', scale, SCALES, 'at which size')
  if has_targets:
    flags.DEFINE_list('targets', [], "targets; the paper's by default")
  flags.DEFINE_string(
    'results', 'experiments/results', 'folder of lines and figures'
  )
  flags.DEFINE_integer(
    'epochs', epochs, "length of a run; 0: the config's", lower_bound=0
  )
  flags.DEFINE_integer(
    'seeds', 1, 'runs of each kind, from seed 0', lower_bound=1
  )
  flags.DEFINE_list('set', [], 'further values of the config, key=value')
  flags.DEFINE_string('workdir', 'runs/studies', 'folder of the runs')
  flags.DEFINE_integer(
    'jobs', 0, 'runs at a time; 0: one per device or CPU core', lower_bound=0
  )
  flags.DEFINE_bool('render_only', False, 'train nothing')
  flags.DEFINE_string(
    'lines', '', 'draw the runs of this file of results; train nothing'
  )


def current_setting() -> Setting:
  """Returns the experiment and scale that the flags name."""
  return find_setting(flags.FLAGS.experiment, flags.FLAGS.scale)


def request_runs(
  methods: Sequence[str],
  values: Sequence[str] = (),
  targets: Sequence[str] = (),
  sources: Sequence[str] = (),
  epochs: int = 0,
) -> list[Request]:
  """Returns runs at the flags' targets, seeds and values.

  Args:
    methods: names in `METHODS`.
    values: further `key=value` pairs.
    targets: instead of those of the flags.
    sources: the domains to learn from; all but the target where empty.
    epochs: instead of the flag's.
  """
  given: Any = flags.FLAGS
  setting = current_setting()
  epochs = epochs or given.epochs
  length = [f'epochs={epochs}'] if epochs else []
  if setting.scale == 'tiny':
    length = []  # six steps, whatever the study's length
  return make_requests(
    setting,
    targets or given.targets or setting.targets,
    methods,
    range(given.seeds),
    pathlib.Path(given.workdir),
    [*length, *given.set, *values],
    sources,
  )


def run_study(
  name: str,
  requests: Sequence[Request],
  draw: Draw,
  known: Sequence[records.Line] = (),
) -> None:
  """Trains what is missing, then draws the requested runs.

  With --lines it draws those of the file that have a target and a method of the
  requests, whatever their other values.

  Args:
    name: of the study, which its files begin with.
    requests: the runs of the study.
    draw: from setting, lines and the name of the files to what it wrote.
    known: lines of another command's file: drawn too, and not trained again.
  """
  given: Any = flags.FLAGS
  setting = current_setting()
  out = pathlib.Path(given.results) / f'{name}_{setting.name}'
  path = pathlib.Path(given.lines or f'{out}.jsonl')
  if not (given.render_only or given.lines):
    train_missing(requests, path, find_slots(given.jobs), known=known)
  if given.lines:
    lines = _read_given(path, setting, requests)
  else:
    lines = [*known, *records.read_lines(path)]
    lines = records.find_runs(lines, requests)
  if not lines:
    raise UserError(f'{path} has no runs to show yet.')
  print('\n'.join(str(file) for file in draw(setting, lines, out)))


def _read_given(
  path: pathlib.Path, setting: Setting, requests: Sequence[Request]
) -> list[records.Line]:
  """Returns the lines of a file that --lines names which a study compares."""
  if not path.is_file():
    raise UserError(f'--lines={path}: there is no such file.')
  lines = records.read_lines(path)
  for number, line in enumerate(lines, 1):
    experiment, scale = line['experiment'], line['scale']
    if (experiment, scale) != (setting.experiment, setting.scale):
      raise UserError(
        f'--lines={path}: line {number} is a run of {experiment} at scale '
        f'{scale}, not of {setting.experiment} at scale {setting.scale}; set '
        f'--experiment={experiment} --scale={scale}.'
      )
  wanted = {(request.target, request.method) for request in requests}
  found = [x for x in lines if (x['target'], x['method']) in wanted]
  if not found:
    targets, methods = (
      sorted(set(names)) for names in zip(*wanted, strict=True)
    )
    raise UserError(
      f'--lines={path} has no run of {", ".join(methods)} towards '
      f'{", ".join(targets)}.'
    )
  return found
