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

import numpy as np
from absl import flags
from matplotlib.figure import Figure

from experiments.figures import style
from experiments.runs import command
from experiments.runs.records import Line, find_run, make_title
from experiments.runs.requests import Request
from experiments.runs.scales import Setting
from moda_jax import cli
from moda_jax.errors import UserError
from moda_jax.files.atomic import write_whole
from moda_jax.objectives import metrics as names
from moda_jax.report import palette
from moda_jax.training.config_files import get_config


class Remedy(NamedTuple):
  """One way to weigh the sources.

  Attributes:
    name: as in the table.
    method: its method.
    values: what else differs from the config.
  """

  name: str
  method: str = 'moda_fm'
  values: tuple[str, ...] = ()


REMEDIES = (
  Remedy("the paper's: β at the full rate", values=('beta_rate=1.0',)),
  Remedy('β at a tenth of the rate', values=('beta_rate=0.1',)),
  Remedy(
    'held equal for 2,500 steps',
    values=('beta_rate=1.0', 'alpha_hold=2500'),
  ),
  Remedy('floor of 0.3 / M', 'moda_fm_floored', ('beta_rate=1.0',)),
  Remedy('μ_s relative to the losses', 'moda_fm_relative', ('beta_rate=1.0',)),
  Remedy('solved, projection', 'moda_fm_projected'),
  Remedy('solved, DARN', 'moda_fm_darn'),
  Remedy('equal weights, for comparison', values=('weights=uniform',)),
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


class Row(NamedTuple):
  """What the runs of one remedy have found, means over seeds.

  Attributes:
    remedy: which.
    held_out: accuracy (%) on each source that was the target.
    effective: 1/Σα² at the end over the number of sources, mean over those.
    target: accuracy (%) on the target itself; None where it was not trained.
    alpha: α at the end of that.
  """

  remedy: Remedy
  held_out: dict[str, float]
  effective: float
  target: float | None
  alpha: dict[str, float]

  @property
  def mean(self) -> float:
    """The mean accuracy (%) over held-out sources, which chooses."""
    return float(np.mean(list(self.held_out.values())))


def make_plans(target: str, target_epochs: int) -> list[Plan]:
  """Returns the runs of all remedies."""
  domains = get_config(command.current_setting().config).data.datasets
  sources = [name for name in domains if name != target]
  return [
    Plan(
      remedy,
      [
        request
        for held_out in sources
        for request in command.request_runs(
          [remedy.method],
          remedy.values,
          [held_out],
          [name for name in sources if name != held_out],
        )
      ],
      command.request_runs(
        [remedy.method], remedy.values, [target], epochs=target_epochs
      ),
    )
    for remedy in REMEDIES
  ]


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
        plan.remedy,
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
  """Writes the table and draws a point for each remedy and column.

  Args:
    plans: the runs of all remedies.
    target: of the study.
    setting: the experiment at its scale.
    lines: the finished runs.
    path: of the files, without their endings.
  """
  rows = find_rows(plans, lines)
  if not rows:
    raise UserError('No remedy has all its runs with a source held out yet.')
  title = make_title(setting, [x for x in lines if x['target'] != target])
  header = ['weights', *rows[0].held_out, 'mean', '1/Σα² per source']
  header += [target, f'α on {target}']
  table = [_cells(row) for row in rows]
  chosen = max(rows, key=lambda row: row.mean).remedy.name
  caption = (
    f'{title}. Accuracy (%) on each source that was the target, without '
    f'{target}, and their mean, which chooses: {chosen}. {target} itself is '
    'only reported.'
  )
  return [
    _write_markdown(path, caption, header, table),
    style.write_csv(path, header, table),
    *style.save(_draw_points(title, target, rows), path),
  ]


def _cells(row: Row) -> list[str]:
  alpha = ', '.join(f'{k} {v:.2f}' for k, v in row.alpha.items())
  return [
    row.remedy.name,
    *(f'{value:.1f}' for value in row.held_out.values()),
    f'{row.mean:.1f}',
    f'{row.effective:.2f}',
    '' if row.target is None else f'{row.target:.1f}',
    alpha,
  ]


def _write_markdown(
  path: pathlib.Path,
  caption: str,
  header: Sequence[str],
  table: Sequence[Sequence[str]],
) -> pathlib.Path:
  cells = [header, ['---'] * len(header), *table]
  rows = [f'| {" | ".join(row)} |' for row in cells]
  path = path.with_name(f'{path.name}.md')
  with write_whole(path) as file:
    file.write('\n'.join([caption, '', *rows, '']))
  return path


def _draw_points(title: str, target: str, rows: Sequence[Row]) -> Figure:
  figure, (axes,) = style.make_panels(1, title, (5.2, 0.6 + 0.3 * len(rows)))
  places = range(len(rows))
  for name in rows[0].held_out:
    values = [row.held_out[name] for row in rows]
    label = f'{style.domain_name(name)} held out'
    axes.plot(values, places, 'o', color=style.domain_color(name), label=label)
  means = [row.mean for row in rows]
  axes.plot(means, places, '|', color=palette.BLACK, ms=12, label='their mean')
  reached = [(r.target, p) for r, p in zip(rows, places, strict=True)]
  known = [(value, place) for value, place in reached if value is not None]
  if known:
    label = f'{style.domain_name(target)}, only reported'
    axes.plot(*zip(*known, strict=True), 'x', color=palette.GREY, label=label)
  axes.set_yticks(places, [row.remedy.name for row in rows])
  axes.set_ylim(len(rows) - 0.4, -0.6)
  axes.set_xlabel('accuracy (%)')
  figure.legend(loc='outside lower center', ncols=3)
  return figure


def main() -> None:
  """Trains what is missing and draws."""
  target = _TARGET.value
  plans = make_plans(target, _TARGET_EPOCHS.value)
  requests = [request for plan in plans for request in plan.held_out]
  requests += [request for plan in plans for request in plan.real]
  command.run_study(
    'remedies', requests, functools.partial(draw, plans, target)
  )


if __name__ == '__main__':
  command.define_flags('digits', epochs=2)
  _TARGET = flags.DEFINE_string(
    'target', 'mnistm', 'the target of the study, which chooses nothing'
  )
  _TARGET_EPOCHS = flags.DEFINE_integer(
    'target_epochs', 5, 'length of the runs towards the target', lower_bound=1
  )
  cli.run(main)
