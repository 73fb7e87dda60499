"""Differences of compositions to MODA-FM as points, a row for each."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from experiments.figures import style
from moda_jax.report import palette


class Row(NamedTuple):
  """The differences of one composition to the reference, in points.

  Attributes:
    by_target: for each target, NaN where it has no pair of runs.
    mean: over all pairs.
    error: its standard error; NaN of a single pair.
  """

  by_target: Sequence[float]
  mean: float
  error: float


def draw(title: str, targets: Sequence[str], rows: Mapping[str, Row]) -> Figure:
  """Returns the figure.

  In a row the targets lie below one another, and below them their mean, where
  there are several pairs; of a single pair it would be its point.

  Args:
    title: of the figure.
    targets: their names.
    rows: by the names of the compositions.
  """
  means = {n: row for n, row in enumerate(rows.values()) if row.error >= 0}
  lines = len(targets) + bool(means)
  size = (5.6, 0.7 + max(0.22, 0.06 * (lines + 1)) * len(rows))
  figure, (axes,) = style.make_panels(1, title, size)
  axes.axvline(0, color=palette.GREY, lw=1)
  offsets = 0.85 * ((np.arange(lines) + 0.5) / lines - 0.5)
  places = np.arange(len(rows)) + offsets[:, None]
  points = np.array([row.by_target for row in rows.values()], float).T
  edge = _find_edge(points)
  for i, target in enumerate(targets):
    _draw_target(axes, target, i, points[i], places[i], edge)
  if means:
    _draw_means(axes, list(means.values()), places[-1][list(means)])
  for row in range(1, len(rows), 2):
    axes.axhspan(row - 0.5, row + 0.5, color=palette.GREY, alpha=0.1, lw=0)
  axes.grid(False, axis='y')
  axes.set_yticks(range(len(rows)), list(rows))
  axes.set_ylim(len(rows) - 0.5, -0.5)
  axes.xaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
  axes.set_xlabel('points of accuracy above MODA-FM')
  figure.legend(loc='outside lower center', ncols=3)
  return figure


def _find_edge(points: np.ndarray) -> float:
  """Returns the distance from 0 beyond which a point is an arrow.

  Points three times as far as nearly all others would squeeze these.
  """
  distances = np.abs(points[np.isfinite(points)])
  if not distances.size:
    return np.inf
  near = distances[distances <= 3 * np.quantile(distances, 0.95)]
  return 1.25 * float(near.max())


def _draw_target(
  axes: Axes,
  target: str,
  number: int,
  values: np.ndarray,
  places: np.ndarray,
  edge: float,
) -> None:
  """Draws a point in each row; beyond the edge an arrow and the number."""
  far = np.abs(values) > edge
  axes.plot(
    np.where(far, np.nan, values),
    places,
    palette.style(number).marker,
    color=style.domain_color(target),
    label=style.domain_name(target),
    ms=3.5,
  )
  for value, place in zip(values[far], places[far], strict=True):
    side = int(np.sign(value))
    axes.annotate(
      f'{value:+.1f}'.replace('-', '−'),
      (side * edge, place),
      xytext=(-14 * side, 0),
      textcoords='offset points',
      ha='left' if side < 0 else 'right',
      va='center',
      fontsize=7,
      arrowprops={
        'arrowstyle': '-|>',
        'color': style.domain_color(target),
        'shrinkA': 0,
        'shrinkB': 0,
      },
    )
    axes.update_datalim([(side * edge, place)])


def _draw_means(axes: Axes, rows: Sequence[Row], places: np.ndarray) -> None:
  axes.errorbar(
    [row.mean for row in rows],
    places,
    xerr=[row.error for row in rows],
    fmt='|',
    color=palette.BLACK,
    ms=5,
    label='mean, standard error',
  )
