"""Soft neighbourhood density: whether examples lie in tight groups."""

import numpy as np
from scipy import special

from moda_jax.selection.observed import check_rows

_TEMPERATURE = 0.05
_NUMBERS = 2**22  # similarities at a time, 32 MB, several times over


def neighbourhood_density(
  rows: np.ndarray,
  temperature: float = _TEMPERATURE,
  at_a_time: int = _NUMBERS,
) -> float:
  """Returns mean_i H(softmax_{j≠i}(cos(x_i, x_j) / τ)); higher is better.

  Where examples have many near neighbours the softmax is spread over these,
  and its entropy is high: from 0 to ln(N − 1). Saito et al., Tune it the right
  way: unsupervised validation of domain adaptation via soft neighborhood
  density, ICCV 2021, who take predictions `[N, C]` as rows. It is blind to a
  model that gives one class for everything: see `certainty.has_collapsed`.

  Args:
    rows: predictions or features, `[N, F]`, none of them all zeros.
    temperature: τ.
    at_a_time: how many similarities are held in memory; one row's at least.
  """
  x = check_rows(rows, 'rows')
  if len(x) < 2:
    raise ValueError('rows: a neighbourhood needs at least 2 of them.')
  if not temperature > 0:
    raise ValueError(f'temperature = {temperature} must be above 0.')
  lengths = np.linalg.norm(x, axis=1, keepdims=True)
  if not lengths.all():
    raise ValueError('rows: one is all zeros, and has no direction.')
  x = x / lengths
  size = max(1, at_a_time // len(x))
  total = 0.0
  for start in range(0, len(x), size):
    total += _sum_entropies(x, start, start + size, temperature)
  return total / len(x)


def _sum_entropies(
  x: np.ndarray, start: int, stop: int, temperature: float
) -> float:
  """Returns the sum of the entropies of some rows, which have length 1."""
  similar = x[start:stop] @ x.T / temperature
  own = np.arange(len(similar))
  similar[own, start + own] = -np.inf
  return float(special.entr(special.softmax(similar, axis=1)).sum())
