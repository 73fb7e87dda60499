"""Criteria of how certain and how diverse predictions are."""

import numpy as np
from scipy import special

from moda_jax.selection.observed import check_probabilities

_FEW = 0.25  # of the other classes, below which a prediction has collapsed


def mean_entropy(probabilities: np.ndarray) -> float:
  """Returns the mean of H(p_i) = −Σ_c p_ic ln p_ic; lower is better.

  Morerio et al., Minimal-entropy correlation alignment for unsupervised deep
  domain adaptation, ICLR 2018. A model that gives one class for everything,
  with certainty, has the best value: see `has_collapsed`.

  Args:
    probabilities: `[N, C]`.
  """
  p = check_probabilities(probabilities)
  return float(special.entr(p).sum(axis=1).mean())


def information(probabilities: np.ndarray) -> float:
  """Returns H(mean_i p_i) − mean_i H(p_i); higher is better.

  The mutual information of input and prediction: from 0 to ln C. Bridle et al.,
  Unsupervised classifiers, mutual information and 'phantom targets', NIPS 1991;
  for adaptation Shi & Sha, ICML 2012.

  Args:
    probabilities: `[N, C]`.
  """
  p = check_probabilities(probabilities)
  diversity = special.entr(p.mean(axis=0)).sum()
  return float(diversity - special.entr(p).sum(axis=1).mean())


def nuclear_norm(probabilities: np.ndarray) -> float:
  """Returns ‖P‖_* / √(N · min(N, C)); higher is better.

  The sum of the singular values of the predictions `[N, C]` over the largest
  that it can be, which is reached where all are certain and classes equally
  frequent: from above 0 to 1. Cui et al., Towards discriminability and
  diversity: batch nuclear-norm maximization, CVPR 2020.

  Args:
    probabilities: `[N, C]`.
  """
  p = check_probabilities(probabilities)
  total = np.linalg.svd(p, compute_uv=False).sum()
  return float(total / np.sqrt(len(p) * min(p.shape)))


def effective_classes(probabilities: np.ndarray) -> float:
  """Returns exp H(mean_i p_i): 1 for a single class, C for all alike.

  Args:
    probabilities: `[N, C]`.
  """
  mean = check_probabilities(probabilities).mean(axis=0)
  return float(np.exp(special.entr(mean).sum()))


def is_few(effective: float, classes: int) -> bool:
  """Says whether so many effective classes are too few to be believed.

  That is fewer than 1 + (C − 1) / 4: 3.25 of ten, 1.25 of two. A target whose
  own classes are as unequal is refused too.

  Args:
    effective: see `effective_classes`.
    classes: C, how many there are; or the number of examples, if these are
      fewer.
  """
  return effective < 1 + _FEW * (classes - 1)


def has_collapsed(probabilities: np.ndarray) -> bool:
  """Says whether the mean prediction lies on few classes, see `is_few`.

  Args:
    probabilities: `[N, C]`.
  """
  effective = effective_classes(probabilities)
  return is_few(effective, min(np.shape(probabilities)))
