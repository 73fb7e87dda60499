"""Accuracies of methods by target as a figure, beside the paper's."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.figures import style
from experiments.figures.method_table import Row, Table
from moda_jax.report import palette


def draw_table(table: Table) -> Figure:
  """Returns a panel per target with a line per row, the paper's beside."""
  count = len(table.rows)
  labels = [_figure_label(table, row) for row in table.rows]
  lines = 2 if any('\n' in label for label in labels) else 1
  figure, panels = style.make_panels(
    len(table.targets), table.title, (2.6, 0.9 + 0.24 * lines * count)
  )
  figure.set_size_inches(figure.get_figwidth() + 1.2, figure.get_figheight())
  places = range(count)
  for axes, target in zip(panels, table.targets, strict=True):
    for place, row in zip(places, table.rows, strict=True):
      _draw_row(axes, place, row, table, target)
    first = axes is panels[0]
    axes.set_yticks(places, labels if first else [''] * count)
    axes.set_ylim(count - 0.4, -0.6)
    axes.set_title(style.domain_name(target))
    axes.set_xlabel('accuracy (%)')
  if table.setting.has_published:
    spread = any(
      len(runs) > 1 for row in table.rows for runs in row.runs.values()
    )
    here = 'here, ± standard deviation' if spread else 'here'
    panels[-1].plot([], [], 'o', color=palette.BLACK, label=here)
    panels[-1].plot([], [], 'o', color=palette.BLACK, mfc='none', label='paper')
    figure.legend(loc='outside lower center', ncols=2)
  return figure


def _figure_label(table: Table, row: Row) -> str:
  name = style.method_look(row.method).name
  differences = table.name_differences(row)
  return f'{name}\n({differences})' if differences else name


def _draw_row(
  axes: Axes, place: int, row: Row, table: Table, target: str
) -> None:
  look = style.method_look(row.method)
  ours = row.accuracies(target)
  if ours:
    spread = np.std(ours, ddof=1) if len(ours) > 1 else None
    axes.errorbar(
      np.mean(ours),
      place,
      xerr=spread,
      fmt=look.marker,
      color=look.color,
      capsize=2,
    )
  figure = table.published(row, target)
  if figure:
    axes.plot(figure[0], place, look.marker, color=look.color, mfc='none')
