"""What a run logged, over its steps, as figures."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from moda_jax.objectives import metrics as names
from moda_jax.objectives.method import Confident
from moda_jax.report.html import WIDTH
from moda_jax.report.palette import Style, style
from moda_jax.training import progress
from moda_jax.training.evaluation import ACCURACY
from moda_jax.training.metrics_file import last_values

Lines = list[dict[str, float]]  # of metrics.jsonl
_FEW = 40  # points, which are then marked
_NOT_LOSSES = (
  *names.NOT_LOSSES,
  progress.IMAGES_PER_SECOND,
  progress.STEPS_PER_SECOND,
  'target/',
  'selection/',
)
_TITLES = {
  names.LOSS: 'Total loss',
  names.CLASS: 'Class loss',
  names.DISCRIMINATOR: 'Discriminator loss',
  names.DISCRIMINATOR_TARGET: 'Discriminator loss on the target',
  names.MIXTURE: 'Mixture loss',
  names.TAUGHT: 'Loss of being taught by other experts',
}


def make_axes(ylabel: str, height: float = 3.0) -> tuple[Figure, Axes]:
  """Returns a figure over steps, of the width that phones can show."""
  figure = Figure(figsize=(WIDTH, height), layout='constrained')
  axes = figure.subplots()
  axes.set_xlabel('step')
  axes.set_ylabel(ylabel)
  axes.grid(alpha=0.3)
  axes.spines[['top', 'right']].set_visible(False)
  # Of steps, which are whole.
  axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
  return figure, axes


def draw_accuracy(
  runs: Mapping[str, Lines], styles: Mapping[str, Style]
) -> Figure:
  """Draws target accuracy over steps, one line per run."""
  figure, axes = make_axes('target accuracy (%)')
  for name, lines in runs.items():
    steps, values = series(lines, ACCURACY)
    _plot(axes, steps, 100 * values, name, styles[name])
  if len(runs) > 1:
    axes.legend(fontsize=9)
  return figure


def draw_shares(
  label: str, lines: Lines, name: str, styles: Mapping[str, Style]
) -> Figure:
  """Draws a metric by source, from 0 to 1, over steps."""
  figure, axes = make_axes(label)
  for source in names.select(last_values(lines), name):
    values = series(lines, f'{name}/{source}')
    _plot(axes, *values, source, styles[source])
  axes.set_ylim(-0.02, 1.02)
  axes.legend(fontsize=9)
  return figure


def draw_confident(
  lines: Lines, confident: Confident, threshold: float | None
) -> Figure:
  """Draws the share of target samples that a term trains on."""
  limit = confident.symbol
  if threshold is not None:
    # Of a symbol such as 'τ c' the first letter is what is set.
    rest = limit[1:] and f'{limit}, {limit[0]}'
    limit = f'{rest or limit} = {threshold:g}'
  figure, axes = make_axes(f'target samples above {limit} (%)')
  steps, values = series(lines, confident.metric)
  _plot(axes, steps, 100 * values, '', style(0))
  axes.set_ylim(-2, 102)
  return figure


def draw_metric(label: str, lines: Lines, name: str, own: Style) -> Figure:
  """Draws one metric over steps."""
  figure, axes = make_axes(label, 2.7)
  _plot(axes, *series(lines, name), '', own)
  return figure


def draw_losses(
  lines: Lines, target: str, styles: Mapping[str, Style]
) -> dict[str, Figure]:
  """Draws every loss over steps; returns the figures by title.

  A term that is logged by domain has a figure of its own; the others share one.

  Args:
    lines: of metrics.jsonl.
    target: the name of the target.
    styles: of the domains.
  """
  groups: dict[str, dict[str, str]] = {}
  last = last_values(lines)
  for name in last:
    if name == 'step' or name.startswith(_NOT_LOSSES):
      continue
    term, _, domain = name.partition('/')
    # The sum of what is shown by domain.
    if name == names.DISCRIMINATOR and names.select(last, name):
      continue
    if not domain and term not in (names.LOSS, names.DISCRIMINATOR):
      term, domain = 'Other terms', name
    groups.setdefault(term, {})[domain] = name
  order = sorted(groups, key=lambda term: (term == 'Other terms', term))
  figures = {}
  for term in order:
    title = _TITLES.get(term, term)
    figures[title] = _draw_term(lines, groups[term], target, styles)
  return figures


def _draw_term(
  lines: Lines,
  members: dict[str, str],
  target: str,
  styles: Mapping[str, Style],
) -> Figure:
  figure, axes = make_axes('mean since the last point', 2.7)
  for place, (domain, name) in enumerate(members.items()):
    shown = target if domain == 'target' else domain
    label = f'{target} (target)' if domain == 'target' else domain
    # Methods of several copies name both a domain and a copy.
    own = styles.get(shown, style(place))
    _plot(axes, *series(lines, name), label, own)
  if any(members):
    axes.legend(fontsize=8, ncols=2 if len(members) > 4 else 1)
  return figure


def _plot(
  axes: Axes, steps: np.ndarray, values: np.ndarray, label: str, own: Style
) -> None:
  axes.plot(
    steps,
    values,
    label=label,
    color=own.colour,
    linestyle=own.dash,
    marker=own.marker if len(steps) <= _FEW else None,
    markersize=4,
    linewidth=1.6,
  )


def series(lines: Lines, name: str) -> tuple[np.ndarray, np.ndarray]:
  """Returns the steps and values of a metric, where it was logged."""
  found = [(line['step'], line[name]) for line in lines if name in line]
  steps, values = np.array(found, float).reshape(-1, 2).T
  return steps, values
