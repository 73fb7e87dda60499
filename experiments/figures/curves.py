"""Curves over training: accuracy with trend lines, and source weights."""

import pathlib

import numpy as np
from matplotlib.axes import Axes

from experiments.figures import style
from experiments.runs.records import Line, make_title
from experiments.runs.scales import Setting
from moda_jax.errors import UserError
from moda_jax.objectives import metrics as names
from moda_jax.training.evaluation import ACCURACY

_LEGEND = 0.7  # inches
SKIPPED = 2  # points at the start that the paper's trend lines leave out


def epochs_of(line: Line) -> np.ndarray:
  """Returns the evaluations of a run in epochs."""
  return np.array(line['curve']['step']) / line['epoch_steps']


def fit_trend(epochs: np.ndarray, values: np.ndarray) -> tuple[float, float]:
  """Returns slope and intercept of the least-squares line after the start."""
  if len(epochs) < SKIPPED + 2:
    raise UserError(
      f'A trend needs more than {SKIPPED + 1} evaluations; there are '
      f'{len(epochs)}.'
    )
  slope, intercept = np.polyfit(epochs[SKIPPED:], values[SKIPPED:], 1)
  return float(slope), float(intercept)


def _with_curves(lines: list[Line], needed: str) -> list[Line]:
  """Returns the runs that have such a curve; refuses to draw none."""
  found = [
    line
    for line in lines
    if line['curve'] and any(n.startswith(needed) for n in line['curve'])
  ]
  if not found:
    raise UserError(f'None of the runs has a curve of {needed}.')
  return found


def _by_target(setting: Setting, lines: list[Line]) -> dict[str, list[Line]]:
  targets = {line['target'] for line in lines}
  order = [t for t in setting.targets if t in targets]
  return {t: [x for x in lines if x['target'] == t] for t in order}


def draw_accuracy(
  setting: Setting, lines: list[Line], path: pathlib.Path
) -> list[pathlib.Path]:
  """Draws accuracy per epoch, the mean over seeds, with slopes of the trend."""
  by_target = _by_target(setting, _with_curves(lines, ACCURACY))
  title = make_title(setting, lines)
  width, height = style.PANEL
  size = (width, height + _LEGEND)
  figure, panels = style.make_panels(len(by_target), title, size)
  rows: list[list[object]] = []
  for axes, (target, runs) in zip(panels, by_target.items(), strict=True):
    for method in dict.fromkeys(run['method'] for run in runs):
      same = [run for run in runs if run['method'] == method]
      epochs, values = epochs_of(same[0]), _mean_accuracy(same)
      slope = _draw_method(axes, method, epochs, values)
      rows += [
        [target, method, len(same), epoch, value, slope]
        for epoch, value in zip(epochs, values, strict=True)
      ]
    axes.set_title(style.domain_name(target))
    axes.set_xlabel('epoch')
    axes.legend(  # below, where no curve can be
      title='slope (points per epoch)',
      title_fontsize=7,
      loc='upper center',
      bbox_to_anchor=(0.5, -0.2),
    )
  panels[0].set_ylabel('accuracy (%)')
  header = ['target', 'method', 'seeds', 'epoch', 'accuracy', 'slope']
  return [*style.save(figure, path), style.write_csv(path, header, rows)]


def _mean_accuracy(runs: list[Line]) -> np.ndarray:
  curves = [run['curve'][ACCURACY] for run in runs]
  shortest = min(len(curve) for curve in curves)
  if shortest < max(len(curve) for curve in curves):
    raise UserError(
      f'Runs of {runs[0]["method"]} on {runs[0]["target"]} differ in length.'
    )
  return 100 * np.mean(curves, axis=0)


def _draw_method(
  axes: Axes, method: str, epochs: np.ndarray, values: np.ndarray
) -> float:
  look = style.method_look(method)
  slope, intercept = fit_trend(epochs, values)
  label = f'{look.name} ({slope:+.3f})'
  axes.plot(epochs, values, look.line, color=look.color, label=label)
  trend = slope * epochs[SKIPPED:] + intercept
  axes.plot(epochs[SKIPPED:], trend, '--', color=look.color, alpha=0.6, lw=1)
  return slope


def draw_source_weights(
  setting: Setting, lines: list[Line], path: pathlib.Path
) -> list[pathlib.Path]:
  """Draws α per epoch of the first seed, a panel for each target."""
  prefix = f'{names.ALPHA}/'
  found = [x for x in _with_curves(lines, prefix) if x['method'] == 'moda_fm']
  by_target = _by_target(setting, found)
  title = make_title(setting, found)
  figure, panels = style.make_panels(len(by_target), title, sharey=True)
  rows: list[list[object]] = []
  for axes, (target, runs) in zip(panels, by_target.items(), strict=True):
    run = min(runs, key=lambda run: run['seed'])
    mu_s = run['config']['objective.mu_s']
    epochs = epochs_of(run)
    for source in run['sources']:
      values = run['curve'][prefix + source]
      color, name = style.domain_color(source), style.domain_name(source)
      axes.plot(epochs, values, color=color, label=name)
      rows += [
        [target, run['seed'], mu_s, source, epoch, value]
        for epoch, value in zip(epochs, values, strict=True)
      ]
    axes.set_title(rf'{style.domain_name(target)}, $\mu_s={mu_s}$')
    axes.set_xlabel('epoch')
    axes.set_ylim(-0.02, 1.02)
    axes.legend()
  panels[0].set_ylabel(r'source weight $\alpha$')
  header = ['target', 'seed', 'mu_s', 'source', 'epoch', 'alpha']
  return [*style.save(figure, path), style.write_csv(path, header, rows)]
