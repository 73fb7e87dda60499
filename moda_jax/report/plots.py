"""Pictures of a run, drawn from its metrics and its batches."""

import pathlib
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from moda_jax.objectives import metrics as names
from moda_jax.training import progress
from moda_jax.training.evaluation import ACCURACY

matplotlib.use('Agg')  # no display is needed, nor ever opened

Lines = list[dict[str, float]]  # of metrics.jsonl


class ViewSamples(NamedTuple):
  """Target images of one mini-batch, with what the classifier says about them.

  Attributes:
    views: name to images `[N, H, W, 3]` uint8, the same samples in each.
    pseudo_labels: `[N]` class names, from the weak view.
    confidences: `[N]`, the probabilities of those classes.
    threshold: τ; None for a method that does not use pseudo-labels.
  """

  views: dict[str, np.ndarray]
  pseudo_labels: list[str]
  confidences: np.ndarray
  threshold: float | None


def plot_accuracy(runs: dict[str, Lines], path: pathlib.Path) -> None:
  """Plots target accuracy over steps, one line per run."""
  figure, axes = _axes('step', 'target accuracy (%)')
  for name, lines in runs.items():
    steps, values = _series(lines, ACCURACY)
    axes.plot(steps, 100 * values, marker='o', markersize=3, label=name)
  axes.legend()
  figure.savefig(path)


class Shares(NamedTuple):
  """A metric by source, from 0 to 1, over time."""

  label: str
  name: str
  lines: Lines


def plot_shares(shares: Shares, path: pathlib.Path) -> None:
  """Plots a metric by source over steps."""
  figure, axes = _axes('step', shares.label)
  for source in names.select(shares.lines[-1], shares.name):
    name = f'{shares.name}/{source}'
    axes.plot(*_series(shares.lines, name), label=source)
  axes.set_ylim(0, 1)
  axes.legend()
  figure.savefig(path)


_NOT_LOSSES = (
  *names.NOT_LOSSES,
  progress.IMAGES_PER_SECOND,
  progress.STEPS_PER_SECOND,
  'step',
  'target/',
)


def plot_losses(lines: Lines, path: pathlib.Path) -> None:
  """Plots every loss term over steps, and the share of samples above τ."""
  figure, axes = _axes('step', 'mean since the last point')
  for name in sorted(lines[-1]):
    # 'discriminator' is the sum of what is shown by domain.
    if not name.startswith(_NOT_LOSSES) and name != names.DISCRIMINATOR:
      label = names.LABELS.get(name, name)
      axes.plot(*_series(lines, name), label=label, linewidth=1)
  axes.legend(fontsize=7)
  figure.savefig(path)


def plot_views(samples: ViewSamples, path: pathlib.Path) -> None:
  """Plots one row per view, one column per sample, its pseudo-label above."""
  count, rows = len(samples.pseudo_labels), len(samples.views)
  figure = Figure(figsize=(0.9 * count, 1.1 * rows), dpi=110)
  grid = figure.subplots(rows, count, squeeze=False)
  for row, (view, images) in zip(grid, samples.views.items(), strict=True):
    for axes, image in zip(row, images, strict=True):
      axes.imshow(image)
      axes.set_xticks([])
      axes.set_yticks([])
    row[0].set_ylabel(view)
  for i, axes in enumerate(grid[0]):
    confidence = samples.confidences[i]
    used = samples.threshold is not None and confidence > samples.threshold
    axes.set_title(
      f'{samples.pseudo_labels[i]}\n{confidence:.2f}',
      fontsize=8,
      color='tab:green' if used else 'tab:gray',
    )
  figure.tight_layout(pad=0.4)
  figure.savefig(path)


def _axes(xlabel: str, ylabel: str) -> tuple[Figure, matplotlib.axes.Axes]:
  figure = Figure(figsize=(6.4, 3.6), dpi=110, layout='constrained')
  axes = figure.subplots()
  axes.set_xlabel(xlabel)
  axes.set_ylabel(ylabel)
  axes.grid(alpha=0.3)
  return figure, axes


def _series(lines: Lines, name: str) -> tuple[np.ndarray, np.ndarray]:
  found = [(line['step'], line[name]) for line in lines if name in line]
  steps, values = np.array(found, float).reshape(-1, 2).T
  return steps, values
