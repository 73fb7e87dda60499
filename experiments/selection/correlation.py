"""How a criterion orders candidates, against their accuracies."""

import math
from collections.abc import Mapping

from scipy import stats

from moda_jax.selection.ranking import badness

LEAST = 3  # candidates, for a rank correlation to say something


def correlate(
  criterion: str,
  scores: Mapping[str, float],
  accuracies: Mapping[str, float],
) -> float:
  """Returns Spearman's rank correlation of a criterion with accuracy.

  It is NaN where one of the two is constant or few candidates have a score.

  Args:
    criterion: its name, by which it is known which way is better.
    scores: by candidate.
    accuracies: by candidate, of more of them perhaps.
  """
  goodness = [-badness(criterion, score) for score in scores.values()]
  accuracy = [accuracies[name] for name in scores]
  constant = len(set(goodness)) < 2 or len(set(accuracy)) < 2
  if constant or len(scores) < LEAST:
    return math.nan
  return float(stats.spearmanr(goodness, accuracy).statistic)
