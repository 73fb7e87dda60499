"""What a run answers: its confusions, and the class proportions it finds."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from moda_jax.data.domains import Domain
from moda_jax.data.labels import label_shares
from moda_jax.report.examination import Examination, Predicted
from moda_jax.report.html import WIDTH
from moda_jax.report.palette import GREY, SEQUENTIAL, Style

_WRITTEN = 12  # more classes than these have no figures in their cells
_NAMED = 40  # nor names beside them
_COMPARED = 20  # classes whose proportions are shown


def count_confusions(predicted: Predicted) -> np.ndarray:
  """Returns how often a class (row) is taken for another (column)."""
  count = len(predicted.domain.classes)
  places = predicted.domain.known_labels * count + predicted.classes
  return np.bincount(places, minlength=count * count).reshape(count, count)


def draw_confusions(predicted: Predicted) -> Figure:
  """Draws the confusion matrix, each row in percent of its class."""
  counts = count_confusions(predicted)
  sums = np.maximum(counts.sum(axis=1, keepdims=True), 1)
  percent = 100 * counts / sums
  classes = predicted.domain.classes
  figure = Figure(figsize=(WIDTH, WIDTH), layout='constrained')
  axes = figure.subplots()
  axes.imshow(percent, cmap=SEQUENTIAL, vmin=0, vmax=100)
  if len(classes) <= _WRITTEN:
    for i, j in np.ndindex(counts.shape):
      if counts[i, j]:
        axes.text(
          j,
          i,
          f'{percent[i, j]:.0f}',
          ha='center',
          va='center',
          fontsize=9,
          color='white' if percent[i, j] > 55 else 'black',
        )
  if len(classes) <= _NAMED:
    size = 9 if len(classes) <= _WRITTEN else 6
    turned = max(map(len, classes)) > 2
    places = range(len(classes))
    axes.set_xticks(
      places, classes, rotation=90 if turned else 0, fontsize=size
    )
    axes.set_yticks(places, classes, fontsize=size)
  axes.set_xlabel('predicted')
  axes.set_ylabel('is')
  return figure


def find_confusions(predicted: Predicted, most: int = 5) -> list[str]:
  """Returns the commonest confusions as text."""
  counts = count_confusions(predicted)
  np.fill_diagonal(counts, 0)
  classes = predicted.domain.classes
  found = []
  for place in np.argsort(-counts, axis=None, kind='stable')[:most]:
    i, j = np.unravel_index(place, counts.shape)
    if counts[i, j]:
      found.append(f'{classes[i]} taken for {classes[j]}: {counts[i, j]}')
  return found


def draw_proportions(
  examination: Examination, styles: Mapping[str, Style]
) -> Figure:
  """Draws the share of each class, in the sources and found in the target."""
  target = examination.target
  return draw_shares(
    {s.domain.name: label_shares(s.domain) for s in examination.sources},
    target.domain,
    target.probabilities.mean(axis=0),
    styles,
  )


def draw_shares(
  of_sources: Mapping[str, np.ndarray],
  target: Domain,
  estimated: np.ndarray,
  styles: Mapping[str, Style],
) -> Figure:
  """Draws the share of each class, in the sources and in the target.

  Of many classes it is those that differ most from the sources.

  Args:
    of_sources: the shares `[C]`, by name.
    target: has labels where the true shares are known.
    estimated: the target's shares, `[C]`.
    styles: of the domains.
  """
  apart = np.abs(estimated - np.mean(list(of_sources.values()), axis=0))
  chosen = np.sort(np.argsort(-apart, kind='stable')[:_COMPARED])
  figure = Figure(
    figsize=(WIDTH, 1.3 + 0.24 * len(chosen)), layout='constrained'
  )
  axes = figure.subplots()
  rows = np.arange(len(chosen))
  for name, shares in of_sources.items():
    own = styles[name]
    axes.plot(
      100 * shares[chosen],
      rows,
      own.marker,
      color=own.colour,
      markersize=5,
      label=name,
    )
  colour = styles[target.name].colour
  axes.barh(
    rows,
    100 * estimated[chosen],
    0.6,
    color=colour,
    alpha=0.35,
    label=f'{target.name}, estimated',
    zorder=0,
  )
  if target.labels is not None:
    axes.plot(
      100 * label_shares(target)[chosen],
      rows,
      '|',
      color=colour,
      markersize=13,
      markeredgewidth=2.5,
      label=f'{target.name}, true',
    )
  axes.set_yticks(rows, [target.classes[i] for i in chosen], fontsize=9)
  axes.invert_yaxis()
  axes.set_xlim(left=0)
  axes.set_xlabel('share of the examples (%)')
  axes.grid(axis='x', color=GREY, alpha=0.25)
  axes.spines[['top', 'right']].set_visible(False)
  figure.legend(loc='outside lower center', ncols=2, fontsize=9)
  return figure
