"""How far apart two domains are, by a classifier that tells them apart."""

import numpy as np

from moda_jax.selection.observed import check_rows
from moda_jax.selection.sources import separate

_RIDGE = 1e-2


def proxy_distance(
  a: np.ndarray, b: np.ndarray, seed: int = 0, ridge: float = _RIDGE
) -> float:
  """Returns 2(1 − 2ε): 0 for domains that cannot be told apart, 2 at most.

  ε is the share of examples that a logistic regression gives to the wrong
  domain, fitted on one half of both and tried on the other, and the other way
  round. The same number of examples is taken of each domain, and an ε above a
  half counts as a half. The proxy A-distance of Ben-David et al., Analysis of
  representations for domain adaptation, NIPS 2006.

  Args:
    a: features of one domain, `[N, F]`.
    b: features of the other, `[M, F]`.
    seed: of the draw and of the halves.
    ridge: see `separate`; above 0.
  """
  a, b = check_rows(a), check_rows(b)
  count = min(len(a), len(b)) // 2 * 2
  if a.shape[1] != b.shape[1] or not count:
    raise ValueError(
      f'features of shapes {a.shape} and {b.shape}: as many columns, and at '
      'least 2 rows of each, are needed.'
    )
  rng = np.random.default_rng(seed)
  a, b = (x[rng.permutation(len(x))[:count]] for x in (a, b))
  half = count // 2
  halves = [(a[:half], b[:half]), (a[half:], b[half:])]
  wrong = [
    _find_error(fitted, tried, ridge)
    for fitted, tried in (halves, reversed(halves))
  ]
  return 2 * (1 - 2 * min(0.5, float(np.mean(wrong))))


def _find_error(
  fitted: tuple[np.ndarray, np.ndarray],
  tried: tuple[np.ndarray, np.ndarray],
  ridge: float,
) -> float:
  """Returns the share of `tried` that is given to the wrong domain."""
  x = np.concatenate(fitted)
  mean, deviation = x.mean(axis=0), x.std(axis=0)
  deviation = np.where(deviation > 0, deviation, 1)
  signs = np.repeat([-1.0, 1.0], len(fitted[0]))
  *slopes, offset = separate((x - mean) / deviation, signs, ridge)
  margins = (np.concatenate(tried) - mean) / deviation @ slopes + offset
  return float((margins * signs <= 0).mean())
