"""What criteria without target labels say of a model, as metrics."""

import contextlib
import logging

import numpy as np

from moda_jax.data import seeds
from moda_jax.data.domains import Domain
from moda_jax.selection import certainty
from moda_jax.selection.criteria import CRITERIA, Criterion, weigh
from moda_jax.selection.observed import Observed

_log = logging.getLogger(__name__)
PREFIX = 'selection'
JUDGED = 2_000  # examples of the target, and held out of all sources, at most
EFFECTIVE_CLASSES = f'{PREFIX}/effective_classes'


def metric(criterion: str) -> str:
  """Returns the name of the metric that a criterion is logged as."""
  return f'{PREFIX}/{criterion}'


def draw(domain: Domain, most: int = JUDGED) -> np.ndarray:
  """Returns the indices of at most so many examples, the same in every run."""
  entropy = seeds.domain_entropy(0, f'{domain.name}/judged')
  order = np.random.default_rng(entropy).permutation(domain.size)
  return np.sort(order[:most])


def judge(seen: Observed) -> dict[str, float]:
  """Returns every criterion that can be computed, by the metric's name.

  Beside them is how many classes the mean prediction lies on, by which a model
  is refused that has collapsed onto few of them. Of predictions that are not
  finite nothing is said.
  """
  try:
    effective = certainty.effective_classes(seen.probabilities)
  except ValueError as error:  # a judgement must not end training
    _log.warning('the model is not judged: %s', error)
    return {}
  found = {EFFECTIVE_CLASSES: effective}
  # Where weighing fails, so do the criteria that need weights.
  with contextlib.suppress(ValueError):
    seen = weigh(seen)
  for name, criterion in CRITERIA.items():
    if not criterion.can_measure(seen):
      continue
    value = _measure(name, criterion, seen)
    if value is not None:
      found[metric(name)] = value
  return found


def _measure(name: str, criterion: Criterion, seen: Observed) -> float | None:
  try:
    return criterion.measure(seen)
  except ValueError as error:  # as above
    _log.warning('the criterion %s is left out: %s', name, error)
    return None
