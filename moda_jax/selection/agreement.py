"""Agreement of each candidate with the mean prediction of all."""

from collections.abc import Sequence

import numpy as np

from moda_jax.selection.observed import stack_probabilities

AGREEMENT = 'agreement'


def agreements(predicted: Sequence[np.ndarray]) -> list[float]:
  """Returns, for each candidate k, its agreement with all; higher is better.

  (1/N) Σ_i [argmax_c p^k_ic = argmax_c Σ_k p^k_ic]. EnsV of Hu et al., Towards
  reliable model selection for unsupervised domain adaptation: an empirical
  study and a certified baseline, NeurIPS 2024: the mean prediction is, in
  expectation of its loss, no worse than the candidates are on average, so that
  whoever is nearest to it is hardly the worst. Most of the candidates must be
  of use, and copies of one candidate count as many.

  Args:
    predicted: `[N, C]` each, for the same examples.
  """
  p = stack_probabilities(predicted)
  answers = p.sum(axis=0).argmax(axis=1)
  return [float(x) for x in (p.argmax(axis=2) == answers).mean(axis=1)]
