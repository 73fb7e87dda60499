r"""Ways to keep source weights from starving a source, under one budget.

  python -m experiments.remedies --scale=small --target=mnistm

Trains MODA-FM with the paper's source weights, with remedies and with equal
weights, on two kinds of tasks. Each source is the target in turn, and the
target of the study, which these runs never read, is none: by the mean accuracy
of these a remedy is chosen. Then it is trained towards the target itself, for
--target_epochs, whose accuracy is reported and chooses nothing. Writes the
table as .md and .csv and draws it.
"""

import functools
import pathlib
from collections.abc import Sequence
from typing import NamedTuple

import ml_collections
import numpy as np
from absl import flags

from experiments.figures import remedy_table
from experiments.figures.remedy_table import Row
from experiments.runs import command
from experiments.runs.records import (
  Line,
  find_run,
  find_runs,
  format_lengths,
  make_title,
)
from experiments.runs.requests import Request
from experiments.runs.scales import Setting
from moda_jax import cli
from moda_jax.errors import UserError
from moda_jax.objectives import metrics as names
from moda_jax.training.config_files import get_config


class Remedy(NamedTuple):
  """One way to weigh the sources.

  Attributes:
    name: as in the table.
    method: its method.
    values: what else differs from the config.
    is_held: whether α is held equal for the first half of the steps.
    is_equal: whether it is equal weights, for comparison, which are not chosen.
  """

  name: str
  method: str = 'moda_fm'
  values: tuple[str, ...] = ()
  is_held: bool = False
  is_equal: bool = False


REMEDIES = (
  Remedy("the paper's: β at the full rate", values=('beta_rate=1.0',)),
  Remedy('β at a tenth of the rate', values=('beta_rate=0.1',)),
  Remedy(
    'held equal for half of the steps',
    values=('beta_rate=1.0',),
    is_held=True,
  ),
  Remedy('floor of 0.3 / M', 'moda_fm_floored', ('beta_rate=1.0',)),
  Remedy('μ_s relative to the losses', 'moda_fm_relative', ('beta_rate=1.0',)),
  Remedy('solved, projection', 'moda_fm_projected'),
  Remedy('solved, DARN', 'moda_fm_darn'),
  Remedy(
    'equal weights, for comparison',
    values=('weights=uniform',),
    is_equal=True,
  ),
)


class Plan(NamedTuple):
  """The runs of one remedy.

  Attributes:
    remedy: which.
    held_out: with a source in the target's place, which is not read.
    real: towards the target.
  """

  remedy: Remedy
  held_out: list[Request]
  real: list[Request]


def make_plans(target: str, target_epochs: int) -> list[Plan]:
  """Returns the runs of all remedies."""
  setting = command.current_setting()
  domains = get_config(setting.config).data.datasets
  if target not in domains:
    raise UserError(
      f"--target names '{target}'; known are {', '.join(domains)}."
    )
  sources = [name for name in domains if name != target]
  if len(sources) < 3:
    raise UserError(
      f'--experiment={setting.experiment} has {len(sources)} sources: with one '
      'of them held out there is nothing to weigh.'
    )
  return [
    Plan(
      remedy,
      [
        request
        for held_out in sources
        for request in _request(
          remedy, held_out, [name for name in sources if name != held_out]
        )
      ],
      _request(remedy, target, epochs=target_epochs),
    )
    for remedy in REMEDIES
  ]


def _request(
  remedy: Remedy, target: str, sources: Sequence[str] = (), epochs: int = 0
) -> list[Request]:
  """Returns a remedy's runs towards one target, from all sources by default."""
  request = functools.partial(
    command.request_runs,
    [remedy.method],
    targets=[target],
    sources=sources,
    epochs=epochs,
  )
  requests = request(remedy.values)
  if remedy.is_held:
    half = _count_steps(requests[0].config()) // 2
    requests = request([*remedy.values, f'alpha_hold={half}'])
  return requests


def _count_steps(config: ml_collections.ConfigDict) -> int:
  """Returns the length of a run, without its data."""
  run, data = config.run, config.data
  if not run.steps and not data.samples:
    raise UserError(
      '--set=samples=0 leaves open how many steps a run has, and so for how '
      'many α is held equal.'
    )
  return run.steps or run.epochs * -(-data.samples // data.batch_size)


def find_rows(plans: Sequence[Plan], lines: Sequence[Line]) -> list[Row]:
  """Returns a row for each remedy whose held-out runs are all there."""
  rows = []
  for plan in plans:
    held_out = [find_run(lines, request) for request in plan.held_out]
    apart = [line for line in held_out if line is not None]
    if len(apart) < len(held_out):
      continue
    real = [r for r in (find_run(lines, q) for q in plan.real) if r is not None]
    rows.append(
      Row(
        plan.remedy.name,
        plan.remedy.is_equal,
        {
          name: _accuracy([x for x in apart if x['target'] == name])
          for name in dict.fromkeys(line['target'] for line in apart)
        },
        float(np.mean([_effective_share(line) for line in apart])),
        _accuracy(real) if real else None,
        _final_alpha(real[-1]) if real else {},
      )
    )
  return rows


def _accuracy(lines: Sequence[Line]) -> float:
  return 100 * float(np.mean([line['accuracy'] for line in lines]))


def _final_alpha(line: Line) -> dict[str, float]:
  """Returns α at the end; equal weights are not recorded."""
  equal, curves = 1 / len(line['sources']), line['curve']
  return {
    name: curves.get(f'{names.ALPHA}/{name}', [equal])[-1]
    for name in line['sources']
  }


def _effective_share(line: Line) -> float:
  alpha = np.array(list(_final_alpha(line).values()))
  return float(1 / (alpha**2).sum() / alpha.size)


def draw(
  plans: Sequence[Plan],
  target: str,
  setting: Setting,
  lines: list[Line],
  path: pathlib.Path,
) -> list[pathlib.Path]:
  """Writes the table and the figure of the remedies that have runs.

  Args:
    plans: the runs of all remedies.
    target: of the study.
    setting: the experiment at its scale.
    lines: the finished runs.
    path: of the files, without their endings.
  """
  rows = find_rows(plans, lines)
  requests = [request for plan in plans for request in plan.held_out]
  seeds = len({request.seed for request in requests})
  title = make_title(setting, find_runs(lines, requests))
  title += f', {seeds} seed{"s" * (seeds > 1)}'
  real = find_runs(lines, [request for plan in plans for request in plan.real])
  return remedy_table.write(title, target, format_lengths(real), rows, path)


def main() -> None:
  """Trains what is missing and draws."""
  setting = command.current_setting()
  default = 'mnistm' if setting.experiment == 'digits' else setting.targets[0]
  target = _TARGET.value or default
  plans = make_plans(target, _TARGET_EPOCHS.value)
  requests = [request for plan in plans for request in plan.held_out]
  requests += [request for plan in plans for request in plan.real]
  command.run_study(
    'remedies', requests, functools.partial(draw, plans, target)
  )


if __name__ == '__main__':
  command.define_flags('digits', epochs=2, has_targets=False)
  _TARGET = flags.DEFINE_string(
    'target',
    '',
    'the target of the study, which chooses nothing; by default mnistm, or the '
    "first of the experiment's",
  )
  _TARGET_EPOCHS = flags.DEFINE_integer(
    'target_epochs', 5, 'length of the runs towards the target', lower_bound=1
  )
  cli.run(main)
