r"""Whether every method, and every source alone, leaves its first plateau.

  python -m experiments.plateau --scale=small --inits=he,torch

A network that has learned nothing has a class loss of the logarithm of the
number of classes, and some starts keep it there. Trains every method on all
sources, and every domain alone without adaptation, for one epoch from each
start, and writes the class loss on each source, the mean since the entry before
in the log, as .md and .csv. No accuracy is read.
"""

import functools
import math
import pathlib
from collections.abc import Sequence

from absl import flags

from experiments.figures import style
from experiments.figures.markdown import table_lines
from experiments.runs import command
from experiments.runs.records import Line, make_title
from experiments.runs.requests import Request
from experiments.runs.scales import Setting
from moda_jax import cli
from moda_jax.errors import UserError
from moda_jax.files.atomic import write_whole
from moda_jax.objectives import METHODS, metrics
from moda_jax.training.config_files import get_config

_CLASSES = {'digits': 10, 'office31': 31, 'reviews': 2}
_TARGET_ALONE = 'target'  # what the supervised bound learns from
_LEFT = 0.9  # of the plateau's loss: below, something has been learned


def make_requests(
  methods: Sequence[str], inits: Sequence[str], target: str
) -> list[Request]:
  """Returns the runs of all starts, each method's and each domain's own.

  Args:
    methods: names in `METHODS`, trained on all sources.
    inits: ways to start, as `network.init` takes them.
    target: the target domain; where it is the one to learn from, the first
      other domain takes its place, which `source_only` does not read.
  """
  domains = get_config(command.current_setting().config).data.datasets
  if target not in domains:
    raise UserError(
      f"--target names '{target}'; known are {', '.join(domains)}."
    )
  requests = []
  for init in inits:
    values = [f'init={init}']
    requests += command.request_runs(methods, values, [target])
    for source in domains:
      other = next(name for name in domains if name != source)
      place = other if source == target else target
      requests += command.request_runs(
        ['source_only'], values, [place], [source]
      )
  return requests


def final_losses(line: Line) -> dict[str, float]:
  """Returns the class loss at the last evaluation by source, if recorded."""
  prefix = f'{metrics.CLASS}/'
  return {
    name.removeprefix(prefix): curve[-1]
    for name, curve in (line['curve'] or {}).items()
    if name.startswith(prefix)
  }


def draw(
  domains: Sequence[str],
  setting: Setting,
  lines: list[Line],
  path: pathlib.Path,
) -> list[pathlib.Path]:
  """Writes a row for each run; returns the files.

  Args:
    domains: the columns.
    setting: the experiment at its scale.
    lines: the finished runs.
    path: of the files, without their endings.
  """
  lines = [line for line in lines if final_losses(line)]
  if not lines:
    raise UserError('None of the runs has recorded its class losses.')
  plateau = math.log(_CLASSES[setting.experiment])
  names = [*domains, _TARGET_ALONE]
  header = ['start', 'method', 'learns from', *names, 'left the plateau']
  rows = [_cells(line, names, plateau) for line in lines]
  remain = sum(row[-1] == 'no' for row in rows)
  caption = (
    f'{make_title(setting, lines)}. Class loss on each source at the end; '
    f'{plateau:.3f} is that of a network that has learned nothing. Left means '
    f'below {_LEFT} of it on every source: all but {remain} of {len(rows)}.'
  )
  text = path.with_name(f'{path.name}.md')
  text.parent.mkdir(parents=True, exist_ok=True)
  with write_whole(text) as file:
    file.write('\n'.join([caption, '', *table_lines(header, rows), '']))
  return [text, style.write_csv(path, header, rows)]


def _cells(line: Line, names: Sequence[str], plateau: float) -> list[str]:
  losses = final_losses(line)
  has_left = max(losses.values()) < _LEFT * plateau
  return [
    line['config']['network.init'],
    line['method'],
    _TARGET_ALONE if _TARGET_ALONE in losses else '+'.join(line['sources']),
    *(f'{losses[name]:.3f}' if name in losses else '' for name in names),
    'yes' if has_left else 'no',
  ]


def main() -> None:
  """Trains what is missing and writes the table."""
  setting = command.current_setting()
  default = 'mnistm' if setting.experiment == 'digits' else setting.targets[0]
  requests = make_requests(
    _METHODS.value, _INITS.value, _TARGET.value or default
  )
  domains = list(get_config(setting.config).data.datasets)
  command.run_study('plateau', requests, functools.partial(draw, domains))


if __name__ == '__main__':
  command.define_flags('digits', epochs=1, has_targets=False)
  _METHODS = flags.DEFINE_list('methods', list(METHODS), 'names of methods')
  _INITS = flags.DEFINE_list('inits', ['he'], 'ways to start')
  _TARGET = flags.DEFINE_string(
    'target',
    '',
    "the target; by default mnistm, or the first of the experiment's",
  )
  cli.run(main)
