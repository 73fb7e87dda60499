"""All criteria, by name."""

from collections.abc import Callable
from typing import NamedTuple

from moda_jax.selection import certainty, density, sources
from moda_jax.selection.observed import Held, Observed


class Criterion(NamedTuple):
  """A way to judge a model without labels of the target.

  Attributes:
    measure: from what a model shows to one number.
    higher_is_better: whether the model of the largest value is preferred,
      rather than that of the smallest.
    needs_held: whether it reads source examples kept out of training.
    needs_features: whether it reads features.
  """

  measure: Callable[[Observed], float]
  higher_is_better: bool = True
  needs_held: bool = False
  needs_features: bool = False


def _measure_source_accuracy(seen: Observed) -> float:
  return sources.source_accuracy(_held(seen))


def _measure_weighted_accuracy(seen: Observed) -> float:
  held = _held(seen)
  if seen.features is None:
    raise ValueError('the features of the target are needed, and not given.')
  return sources.weighted_accuracy(held, seen.features)


def _held(seen: Observed) -> Held:
  if seen.held is None:
    raise ValueError(
      'source examples that were kept out of training are needed, and none are '
      'given.'
    )
  return seen.held


CRITERIA = {
  'entropy': Criterion(
    lambda seen: certainty.mean_entropy(seen.probabilities),
    higher_is_better=False,
  ),
  'information': Criterion(
    lambda seen: certainty.information(seen.probabilities)
  ),
  'nuclear_norm': Criterion(
    lambda seen: certainty.nuclear_norm(seen.probabilities)
  ),
  'density': Criterion(
    lambda seen: density.neighbourhood_density(seen.probabilities)
  ),
  'source_accuracy': Criterion(_measure_source_accuracy, needs_held=True),
  'weighted_accuracy': Criterion(
    _measure_weighted_accuracy, needs_held=True, needs_features=True
  ),
}
