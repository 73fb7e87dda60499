"""All criteria, by name."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

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

  def can_measure(self, seen: Observed) -> bool:
    """Says whether everything is there that it reads."""
    return not (
      (self.needs_held and seen.held is None)
      or (self.needs_features and seen.features is None)
    )


def weigh(seen: Observed) -> Observed:
  """Returns the same with weights, which several criteria would compute."""
  if seen.held is None or seen.features is None or seen.weights is not None:
    return seen
  weights = sources.importance_weights(seen.held.features, seen.features)
  return seen._replace(weights=weights)


def _measure_source_accuracy(seen: Observed) -> float:
  return sources.source_accuracy(_held(seen))


def _measure_weighted_accuracy(seen: Observed) -> float:
  return sources.weighted_accuracy(_held(seen), _weights(seen))


def _measure_validation_risk(seen: Observed) -> float:
  return sources.validation_risk(_held(seen), _weights(seen))


def _weights(seen: Observed) -> np.ndarray:
  features, held = _features(seen), _held(seen)
  if seen.weights is not None:
    return seen.weights
  return sources.importance_weights(held.features, features)


def _features(seen: Observed) -> np.ndarray:
  if seen.features is None:
    raise ValueError('the features of the target are needed, and not given.')
  return seen.features


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
  'dev_risk': Criterion(
    _measure_validation_risk,
    higher_is_better=False,
    needs_held=True,
    needs_features=True,
  ),
}
