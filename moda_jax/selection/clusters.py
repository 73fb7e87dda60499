"""Whether the features of the target lie in clusters that are its classes."""

import numpy as np
from scipy import special

from moda_jax.selection.observed import check_probabilities, check_rows

_ROUNDS = 100  # of k-means, at most
_ROUNDING = 1e-12  # of what is left of information


def class_ami(probabilities: np.ndarray, features: np.ndarray) -> float:
  """Returns the adjusted mutual information of classes and clusters.

  (I(U, V) − E I) / ((H(U) + H(V)) / 2 − E I), where U are the predicted classes
  argmax_c p_ic, V C clusters of the features by k-means and E I what
  `expected_information` gives; higher is better: 1 where they are the same,
  about 0 where they have nothing to do with each other, and 0 where there is a
  single class. ClassAMI of Musgrave et al., Three new validators and a
  large-scale benchmark ranking for unsupervised domain adaptation, 2022.

  K-means must not start from the predicted classes: with few examples of a
  class and many features each example is nearest to the mean that it is part
  of, so that k-means would give back whatever it is given.

  Args:
    probabilities: `[N, C]`.
    features: of the same examples, `[N, F]`.
  """
  p = check_probabilities(probabilities)
  x = check_rows(features)
  if len(x) != len(p):
    raise ValueError(f'{len(x)} rows of features for {len(p)} predictions.')
  return adjusted_information(p.argmax(axis=1), _cluster(x, p.shape[1]))


def _cluster(x: np.ndarray, count: int) -> np.ndarray:
  """Returns so many groups `[N]`, or fewer, by k-means."""
  x = x - x.mean(axis=0)
  groups = _start(x, count)
  for _ in range(_ROUNDS):
    # A cluster that has lost all its examples is gone.
    _, groups = np.unique(groups, return_inverse=True)
    members = np.eye(groups.max() + 1)[groups]  # [N, K]
    centers = members.T @ x / members.sum(axis=0)[:, None]
    nearest = ((centers**2).sum(axis=1) - 2 * x @ centers.T).argmin(axis=1)
    if (nearest == groups).all():
      break
    groups = nearest
  return groups


def _start(x: np.ndarray, count: int) -> np.ndarray:
  """Returns groups `[N]` about examples that are chosen one after the other.

  Each is the one that lowers the sum of the squared distances to the nearest
  chosen one most, so that nothing is drawn. It takes 2 N² numbers of memory.
  """
  squares = (x**2).sum(axis=1)
  apart = np.maximum(squares[:, None] + squares - 2 * x @ x.T, 0)
  nearest = np.full(len(x), np.inf)
  lowered = np.empty_like(apart)
  chosen = []
  for _ in range(min(count, len(x))):
    best = np.minimum(apart, nearest, out=lowered).sum(axis=1).argmin()
    chosen.append(best)
    nearest = np.minimum(nearest, apart[best])
  return apart[chosen].argmin(axis=0)


def adjusted_information(u: np.ndarray, v: np.ndarray) -> float:
  """Returns the adjusted mutual information of two groupings, `[N]` each.

  See `class_ami`. Vinh et al., Information theoretic measures for clusterings
  comparison, JMLR 2010, with the mean of both entropies as the largest value;
  0 where one of them has a single group.

  Args:
    u: the group of each example, whole numbers.
    v: that of the other grouping.
  """
  _, u = np.unique(u, return_inverse=True)
  _, v = np.unique(v, return_inverse=True)
  if not u.max() or not v.max():
    return 0.0
  counts = np.eye(u.max() + 1)[u].T @ np.eye(v.max() + 1)[v]
  of_u, of_v = counts.sum(axis=1), counts.sum(axis=0)
  entropies = [special.entr(n / len(u)).sum() for n in (of_u, of_v)]
  joint = special.entr(counts / len(u)).sum()
  expected = expected_information(of_u, of_v)
  most = np.mean(entropies) - expected
  if most < _ROUNDING:  # where every example is a group, chance gives as much
    return 0.0
  return float((sum(entropies) - joint - expected) / most)


def expected_information(of_u: np.ndarray, of_v: np.ndarray) -> float:
  """Returns E I(U, V) of groups of given sizes with members at random.

  Σ_ab Σ_n P(n) (n / N) ln(N n / (a b)) over the sizes a of U and b of V, where
  n, how many examples two groups share, is hypergeometric.

  Args:
    of_u: the sizes of the groups, whole numbers above 0.
    of_v: those of the other grouping, which add to the same number.
  """
  total = int(sum(of_u))
  logs = special.gammaln(np.arange(total + 1) + 1)  # ln n!
  b = np.asarray(of_v, int)
  expected = 0.0
  for a in np.asarray(of_u, int):
    n = np.arange(1, a + 1)[:, None]  # [a, 1] beside b [K]
    left = total - a - b + n  # in neither of the two groups
    can_be = (n <= b) & (left >= 0)
    ways = logs[a] + logs[total - a] + logs[b] + logs[total - b] - logs[total]
    orders = logs[n] + logs[a - n] + logs[np.maximum(b - n, 0)]
    orders += logs[np.maximum(left, 0)]
    p = np.exp(np.where(can_be, ways - orders, -np.inf))
    terms = p * n / total * np.log(total * n / (a * b))
    expected += float(terms.sum())
  return expected
