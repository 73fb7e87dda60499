"""Curves over training: accuracy with trend lines, and source weights."""

import pathlib
from collections.abc import Iterable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from experiments.figures import style
from experiments.figures.method_table import format_values
from experiments.runs.records import Line, find_values, make_title
from experiments.runs.scales import Setting
from moda_jax.errors import UserError
from moda_jax.objectives import metrics as names
from moda_jax.training.evaluation import ACCURACY

_LEGEND, _ENTRY = 0.25, 0.15  # inches
_KNOWN = {'mu_s', 'epochs', 'steps'}  # which title and axes say
SKIPPED = 2  # points at the start that the paper's trend lines leave out


def epochs_of(line: Line) -> np.ndarray:
  """Returns the evaluations of a run in epochs."""
  return np.array(line['curve']['step']) / line['epoch_steps']


def fit_trend(
  epochs: np.ndarray, values: np.ndarray
) -> tuple[float, float] | None:
  """Returns slope and intercept of the least-squares line after the start.

  A run of so few evaluations that any line would do has none.
  """
  if len(epochs) < SKIPPED + 2:
    return None
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
  """Returns the runs of each target; the setting's targets come first."""
  targets = {line['target'] for line in lines}
  order = [t for t in setting.targets if t in targets]
  order += sorted(targets - set(order))
  return {t: [x for x in lines if x['target'] == t] for t in order}


def _by_values(
  setting: Setting, lines: list[Line]
) -> dict[tuple[str, str], list[Line]]:
  """Returns a line for each seed by method and values; the last one counts."""
  groups: dict[tuple[str, str], dict[int, Line]] = {}
  for line in lines:
    values = format_values(find_values(line, setting))
    groups.setdefault((line['method'], values), {})[line['seed']] = line
  return {key: list(runs.values()) for key, runs in groups.items()}


def draw_accuracy(
  setting: Setting, lines: list[Line], path: pathlib.Path
) -> list[pathlib.Path]:
  """Draws accuracy per epoch, the mean over seeds, with slopes of the trend.

  Runs of a method at other values have a curve of their own, which names them,
  but for a length that is the same for all, which the title has.
  """
  lines = _with_curves(lines, ACCURACY)
  by_target = {
    target: _by_values(setting, runs)
    for target, runs in _by_target(setting, lines).items()
  }
  several = len({key[1] for own in by_target.values() for key in own}) > 1
  named = several or any(_without_length(x, setting) for x in lines)
  entries = max((1 + named) * len(own) for own in by_target.values())
  width, height = style.PANEL
  size = (width, height + _LEGEND + _ENTRY * entries)
  title = make_title(setting, lines)
  figure, panels = style.make_panels(len(by_target), title, size)
  rows: list[list[object]] = []
  for axes, (target, groups) in zip(panels, by_target.items(), strict=True):
    for (method, values), runs in groups.items():
      epochs, accuracies = epochs_of(runs[0]), _mean_accuracy(runs)
      other = values if several else _without_length(runs[0], setting)
      name = f'\n({other})' if other else ''
      slope = _draw_method(axes, method, epochs, accuracies, name)
      rows += [
        [target, method, values, len(runs), epoch, accuracy, slope]
        for epoch, accuracy in zip(epochs, accuracies, strict=True)
      ]
    axes.set_title(style.domain_name(target))
    axes.set_xlabel('epoch')
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(  # below, where no curve can be
      title='slope (points per epoch)',
      title_fontsize=7,
      loc='upper center',
      bbox_to_anchor=(0.5, -0.2),
    )
  panels[0].set_ylabel('accuracy (%)')
  header = ['target', 'method', 'values', 'seeds', 'epoch', 'accuracy', 'slope']
  return [*style.save(figure, path), style.write_csv(path, header, rows)]


def _without_length(line: Line, setting: Setting) -> str:
  values = find_values(line, setting)
  return format_values(
    {k: v for k, v in values.items() if k not in ('epochs', 'steps')}
  )


def _mean_accuracy(runs: list[Line]) -> np.ndarray:
  if any(run['curve']['step'] != runs[0]['curve']['step'] for run in runs):
    raise UserError(
      f'Runs of {runs[0]["method"]} on {runs[0]["target"]} were evaluated at '
      'different steps.'
    )
  return 100 * np.mean([run['curve'][ACCURACY] for run in runs], axis=0)


def _draw_method(
  axes: Axes, method: str, epochs: np.ndarray, values: np.ndarray, name: str
) -> float | None:
  """Draws a curve and its trend, if it has one; returns the slope.

  Args:
    axes: where.
    method: whose look it has.
    epochs: of the evaluations.
    values: accuracies (%).
    name: what follows the method's in the legend, and makes the line dotted.
  """
  look = style.method_look(method)
  found = fit_trend(epochs, values)
  label = look.name + name + (f' ({found[0]:+.3f})' if found else '')
  line = ':' if name else look.line
  axes.plot(epochs, values, line, color=look.color, label=label)
  if found is None:
    return None
  slope, intercept = found
  trend = slope * epochs[SKIPPED:] + intercept
  axes.plot(epochs[SKIPPED:], trend, '--', color=look.color, alpha=0.6, lw=1)
  return slope


def draw_source_weights(
  setting: Setting, lines: list[Line], path: pathlib.Path
) -> list[pathlib.Path]:
  """Draws α per epoch of one run for each target; see `_choose`."""
  prefix = f'{names.ALPHA}/'
  found = [line for line in lines if line['method'] == 'moda_fm']
  by_target = {
    target: _choose(setting, runs)
    for target, runs in _by_target(setting, _with_curves(found, prefix)).items()
  }
  title = make_title(setting, by_target.values())
  title += _describe_rates(by_target.values())
  figure, panels = style.make_panels(len(by_target), title, sharey=True)
  rows: list[list[object]] = []
  for axes, (target, run) in zip(panels, by_target.items(), strict=True):
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
    axes.set_title(_weights_title(setting, run))
    axes.set_xlabel('epoch')
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylim(-0.02, 1.02)
    axes.legend()
  panels[0].set_ylabel(r'source weight $\alpha$')
  header = ['target', 'seed', 'mu_s', 'source', 'epoch', 'alpha']
  return [*style.save(figure, path), style.write_csv(path, header, rows)]


def _choose(setting: Setting, runs: list[Line]) -> Line:
  """Returns the longest run; of these the nearest to the setting's values.

  Of several seeds it is the first; of equal runs the last line counts.
  """
  longest = max(run['steps'] for run in runs)
  return min(
    (run for run in reversed(runs) if run['steps'] == longest),
    key=lambda run: (len(find_values(run, setting)), run['seed']),
  )


def _describe_rates(runs: Iterable[Line]) -> str:
  """Returns at which share of the paper's rate β moves, unless at all of it."""
  found = {run['config'].get('optimizer.beta_rate', 1.0) for run in runs}
  rates = ' or '.join(f'{rate:g}' for rate in sorted(found))
  return '' if found == {1.0} else f"; β moves at {rates} of the paper's rate"


def _weights_title(setting: Setting, run: Line) -> str:
  """Returns target and μ_s, and below what else is not the setting's."""
  title = style.domain_name(run['target'])
  title += rf', $\mu_s={run["config"]["objective.mu_s"]}$'
  values = find_values(run, setting)
  rest = {k: v for k, v in values.items() if k not in _KNOWN}
  return f'{title}\n({format_values(rest)})' if rest else title
