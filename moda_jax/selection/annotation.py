"""Which examples of the target an annotator should label first."""

from collections.abc import Sequence

import numpy as np
from scipy import special

from moda_jax.selection.observed import stack_probabilities


def disagreement(predicted: Sequence[np.ndarray]) -> np.ndarray:
  """Returns the entropy of the candidates' votes on each example, `[N]`.

  −Σ_c (n_c / K) ln (n_c / K), n_c the number of candidates whose most probable
  class is c: 0 where all agree. Query by committee with vote entropy, Dagan &
  Engelson, Committee-based sampling for training probabilistic classifiers,
  ICML 1995.

  Args:
    predicted: `[N, C]` of each of K candidates, for the same examples.
  """
  p = stack_probabilities(predicted)
  votes = np.eye(p.shape[2])[p.argmax(axis=2)].mean(axis=0)  # [N, C]
  return special.entr(votes).sum(axis=1)


def most_useful(predicted: Sequence[np.ndarray], count: int) -> np.ndarray:
  """Returns the places of examples whose labels would help most, best first.

  Those that candidates disagree on most come first, and among these the ones
  whose mean prediction has the largest entropy. Classes of the mean prediction
  take turns, for no class to fill the list.

  Args:
    predicted: as for `disagreement`.
    count: how many at most.
  """
  mean = stack_probabilities(predicted).mean(axis=0)
  # Rounding must not decide between equal votes.
  votes = np.round(disagreement(predicted), 9)
  entropy = special.entr(mean).sum(axis=1)
  order = np.lexsort((-entropy, -votes))
  of_class = mean[order].argmax(axis=1)
  turns = np.empty(len(order), int)
  for c in np.unique(of_class):
    own = np.flatnonzero(of_class == c)
    turns[own] = np.arange(len(own))
  return order[np.argsort(turns, kind='stable')][:count]
