"""What each source is worth to the target, and what the target consists of."""

import contextlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from moda_jax.data.domains import labelled_name
from moda_jax.report.candidates import Looked
from moda_jax.selection.distance import proxy_distance
from moda_jax.selection.proportions import estimate_proportions
from moda_jax.training.same_budget import BASELINE


class Worth(NamedTuple):
  """What is known of a source.

  Attributes:
    source: its name.
    alpha: its weight in `weighted`; None without such a run.
    before: its distance to the target in the features of the baseline.
    after: the same in those of the chosen run.
  """

  source: str
  alpha: float | None
  before: float | None
  after: float | None


def find_weighted(
  looked: Sequence[Looked], order: Sequence[str]
) -> Looked | None:
  """Returns the run whose α are shown: the best one that has any."""
  weighted = {run.name: run for run in looked if run.alpha}
  return next((weighted[name] for name in order if name in weighted), None)


def value_sources(
  looked: Sequence[Looked], chosen: str, order: Sequence[str]
) -> list[Worth]:
  """Returns what each source is worth; labelled target examples are one.

  Args:
    looked: the finished runs.
    chosen: the name of one of them.
    order: their names, the best first.
  """
  runs = {run.name: run for run in looked}
  weighted = find_weighted(looked, order)
  before = _find_distances(runs.get(BASELINE))
  after = _find_distances(runs.get(chosen))
  *sources, _ = looked[0].features
  return [
    Worth(
      source,
      weighted.alpha.get(source) if weighted else None,
      before.get(source),
      after.get(source),
    )
    for source in sources
  ]


def _find_distances(run: Looked | None) -> dict[str, float]:
  """Returns the distance of each source; not of the target to itself.

  There is none of a domain with a single example, which no page fails for.
  """
  found: dict[str, float] = {}
  if run is None:
    return found
  *sources, target = run.features
  for source in sources:
    if source != labelled_name(target):
      with contextlib.suppress(ValueError):
        found[source] = proxy_distance(
          run.features[source], run.features[target]
        )
  return found


def estimate_classes(run: Looked) -> np.ndarray | None:
  """Returns the estimated share of each class in the target, `[C]`."""
  try:
    return estimate_proportions(*run.known, run.judged)
  except ValueError:  # predictions that no shares explain
    return None
