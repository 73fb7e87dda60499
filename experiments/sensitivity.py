r"""Accuracy against μ_s and against μ_c, as in the paper's appendix.

  python -m experiments.sensitivity --scale=small --targets=mnistm,svhn

Trains MODA-FM at each value of one μ, with the other one at the config's (or
--set=mu_c=0.5), ten epochs each, and draws both on logarithmic axes. An empty
--mu_s= leaves one of them out.
"""

import pathlib
from collections.abc import Sequence

import numpy as np
from absl import flags
from matplotlib.axes import Axes

from experiments.figures import style
from experiments.runs import command
from experiments.runs.records import Line, find_values, make_title
from experiments.runs.requests import Request
from experiments.runs.scales import Setting
from moda_jax import cli
from moda_jax.errors import UserError

Points = dict[float, dict[int, Line]]  # runs by value and seed
Curves = dict[tuple[str, str], Points]  # by target and other values
_TEX = {'mu_s': r'$\mu_s$', 'mu_c': r'$\mu_c$'}


def find_curves(setting: Setting, lines: list[Line], name: str) -> Curves:
  """Returns runs by value, for each target and all other values.

  Args:
    setting: the experiment at its scale.
    lines: the runs.
    name: of the value that is varied; runs that share everything else with no
      other run are left out.
  """
  curves: Curves = {}
  for line in lines:
    value = line['config'].get(f'objective.{name}')
    if value is None:
      continue
    rest = {k: v for k, v in find_values(line, setting).items() if k != name}
    shown = ', '.join(f'{k}={v}' for k, v in rest.items())
    points = curves.setdefault((line['target'], shown), {})
    points.setdefault(value, {})[line['seed']] = line
  return {key: points for key, points in curves.items() if len(points) > 1}


def draw(
  setting: Setting, lines: list[Line], path: pathlib.Path
) -> list[pathlib.Path]:
  """Draws a panel for each μ that was varied; writes the numbers beside."""
  every = {name: find_curves(setting, lines, name) for name in _TEX}
  found = {name: curves for name, curves in every.items() if curves}
  drawn = [
    line
    for curves in found.values()
    for points in curves.values()
    for runs in points.values()
    for line in runs.values()
  ]
  if not drawn:
    raise UserError('No two of the runs differ in one μ alone.')
  title = make_title(setting, drawn)
  figure, panels = style.make_panels(len(found), title, (3.4, 2.6), sharey=True)
  rows: list[list[object]] = []
  for axes, (name, curves) in zip(panels, found.items(), strict=True):
    several = len({rest for _, rest in curves}) > 1
    for (target, rest), points in curves.items():
      label = style.domain_name(target) + (f' ({rest})' if several else '')
      _draw_curve(axes, points, style.domain_color(target), label)
      rows += [
        [name, value, target, rest, len(points[value]), mean, deviation]
        for value, mean, deviation in summarise(points)
      ]
    axes.set_xscale('log')
    axes.set_xlabel(_TEX[name])
    axes.legend()
  panels[0].set_ylabel('accuracy (%)')
  header = ['varied', 'value', 'target', 'other values', 'seeds']
  header += ['accuracy', 'standard deviation']
  return [*style.save(figure, path), style.write_csv(path, header, rows)]


def summarise(points: Points) -> list[tuple[float, float, float]]:
  """Returns value, mean and standard deviation over seeds, in order."""
  summary = []
  for value in sorted(points):
    accuracies = [100 * run['accuracy'] for run in points[value].values()]
    deviation = np.std(accuracies, ddof=1) if len(accuracies) > 1 else 0.0
    summary.append((value, float(np.mean(accuracies)), float(deviation)))
  return summary


def _draw_curve(axes: Axes, points: Points, color: str, label: str) -> None:
  values, means, spread = zip(*summarise(points), strict=True)
  axes.errorbar(
    values, means, yerr=spread, marker='o', color=color, label=label, capsize=2
  )


def make_requests(mu_s: Sequence[str], mu_c: Sequence[str]) -> list[Request]:
  """Returns the runs at each value of one μ, the other being the config's."""
  if not (mu_s or mu_c):
    raise UserError('--mu_s= and --mu_c= are both empty: nothing is varied.')
  return [
    request
    for name, values in (('mu_s', mu_s), ('mu_c', mu_c))
    for value in values
    for request in command.request_runs(['moda_fm'], [f'{name}={value}'])
  ]


def main() -> None:
  """Trains what is missing and draws."""
  requests = make_requests(_MU_S.value, _MU_C.value)
  command.run_study('sensitivity', requests, draw)


if __name__ == '__main__':
  command.define_flags('digits', epochs=10)
  _MU_S = flags.DEFINE_list(
    'mu_s', ['0.01', '0.04', '0.14', '0.53', '2.0'], 'values of μ_s'
  )
  _MU_C = flags.DEFINE_list(
    'mu_c', ['0.01', '0.03', '0.1', '0.3', '1.0'], 'values of μ_c'
  )
  cli.run(main)
