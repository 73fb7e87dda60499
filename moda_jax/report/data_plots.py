"""Pictures of the data of an experiment, before any training."""

import pathlib

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from moda_jax.data.domains import Domain
from moda_jax.data.labels import label_distances, label_shares

_CELL = 0.85  # inches: room for '0.00991' with some air
_LETTER = 0.09  # inches, about


def plot_labels(domains: list[Domain], path: pathlib.Path) -> None:
  """Plots label distributions as bars, one row per domain, and distances."""
  draw_labels(domains).savefig(path)


def draw_labels(domains: list[Domain]) -> Figure:
  """Returns the figure of `plot_labels`."""
  classes = domains[0].classes
  width = min(16, 4 + 0.35 * len(classes))
  longest = max(len(domain.name) for domain in domains)
  room = max(3.5, _CELL * len(domains) + _LETTER * longest + 0.5)
  size = (width + room, 1.5 * len(domains) + 1.2)
  figure = Figure(size, layout='constrained')
  bars, matrix = figure.subfigures(
    1, 2, squeeze=False, width_ratios=(width, room)
  )[0]
  rows = bars.subplots(len(domains), 1, sharex=True, sharey=True, squeeze=False)
  for axes, domain in zip(rows[:, 0], domains, strict=True):
    axes.bar(range(len(classes)), 100 * label_shares(domain))
    axes.set_ylabel(f'{domain.name} (%)')
    axes.set_xticks(range(len(classes)), classes, rotation=60, ha='right')
    axes.tick_params('x', labelbottom=axes is rows[-1, 0])
  _draw_distances(domains, matrix.subplots())
  return figure


def _draw_distances(domains: list[Domain], axes: Axes) -> None:
  names = [domain.name for domain in domains]
  values = np.zeros((len(names), len(names)))
  for (a, b), value in label_distances(domains).items():
    i, j = names.index(a), names.index(b)
    values[i, j] = values[j, i] = value
  axes.imshow(values, cmap='Blues', vmin=0, vmax=max(2 * values.max(), 1e-3))
  for i, j in np.ndindex(values.shape):
    axes.text(j, i, f'{values[i, j]:.3g}', ha='center', va='center')
  axes.set_xticks(range(len(names)), names, rotation=30, ha='right')
  axes.set_yticks(range(len(names)), names)
  axes.set_title('Jensen-Shannon distance')


def plot_samples(
  views: dict[str, dict[str, np.ndarray]], path: pathlib.Path
) -> None:
  """Plots sample images `[N, H, W, 3]`, one row per domain and view."""
  rows = [(d, v, x) for d in views for v, x in views[d].items()]
  count = max(len(images) for _, _, images in rows)
  figure = Figure((1.1 * count + 1.5, 1.15 * len(rows)), layout='constrained')
  grid = figure.subplots(len(rows), count, squeeze=False)
  for row, (domain, view, images) in zip(grid, rows, strict=True):
    for axes, image in zip(row, images, strict=False):
      axes.imshow(image, interpolation='nearest')
    for axes in row:
      axes.set_xticks([])
      axes.set_yticks([])
    row[0].set_ylabel(f'{domain}\n{view}', rotation=0, ha='right', va='center')
  figure.savefig(path)
