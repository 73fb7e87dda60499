"""The terms of Theorem 1 as functions of arrays.

For any α, with probability at least 1 − δ,

  target risk ≤ Σ α_j risk_j + ½ divergence(S_α, T) + λ_α + B_α(δ) + V(δ).

λ_α, the least combined risk of any classifier on sources and target, cannot be
known without labels of the target, and is not computed here.
"""

import math
from collections.abc import Sequence

import numpy as np


def sampling_term(
  alpha: Sequence[float], samples: int, dimension: float, delta: float
) -> float:
  """Returns B_α(δ) for n target samples and n/M of each source.

  Args:
    alpha: the source weights, `[M]`.
    samples: n.
    dimension: the VC dimension d.
    delta: δ.
  """
  weights = np.asarray(alpha, float)
  inner = 2 * dimension * math.log(2 * (samples + 1)) + math.log(8 / delta)
  squares = float(np.sum(weights**2))
  return 2 * math.sqrt(len(weights) * inner / samples * squares)


def divergence_term(samples: int, dimension: float, delta: float) -> float:
  """Returns V(δ), what the divergence may be off by; see `sampling_term`."""
  inner = 2 * dimension * math.log(2 * samples) + math.log(4 / delta)
  return 2 * math.sqrt(inner / samples)


def divergence(
  alpha: Sequence[float], sources: Sequence[np.ndarray], target: np.ndarray
) -> float:
  """Returns 2 |Pr_Sα(h = 1) − Pr_T(h = 1)| of one discriminator h.

  Args:
    alpha: the source weights, `[M]`.
    sources: for each source, `[N]` whether h says 1.
    target: the same of the target.
  """
  shares = [float(np.mean(said)) for said in sources]
  return 2 * abs(float(np.dot(alpha, shares)) - float(np.mean(target)))
