"""The shares of the classes in a domain without labels."""

import numpy as np
from scipy import optimize

from moda_jax.selection.observed import check_labels, check_probabilities


def estimate_proportions(
  held: np.ndarray, labels: np.ndarray, target: np.ndarray
) -> np.ndarray:
  """Returns the estimated share of each class in the target, `[C]`.

  Black-box shift estimation, Lipton et al., Detecting and correcting for label
  shift with black box predictors, ICML 2018: q_j = w_j p(y = j) for w ≥ 0 that
  minimises |C w − μ|, scaled to add to 1, where C_ij is the mean over source
  examples of p_i [y = j], and μ_i that of p_i over the target's. It is right
  where examples of a class look alike in source and target. Rows with a 1 and
  zeros give the form of predicted classes.

  Args:
    held: predictions for source examples kept out of training, `[N, C]`.
    labels: of these, `[N]`. A class that none of them has gets no share.
    target: predictions for target examples, `[M, C]`.
  """
  held = check_probabilities(held, 'predictions for sources')
  target = check_probabilities(target, 'predictions for the target')
  if held.shape[1] != target.shape[1]:
    raise ValueError(
      f'predictions of {held.shape[1]} classes for the sources and of '
      f'{target.shape[1]} for the target: as many are needed.'
    )
  is_class = np.eye(held.shape[1])[check_labels(labels, held.shape)]  # [N, C]
  confusion = held.T @ is_class / len(held)
  try:
    weights, _ = optimize.nnls(confusion, target.mean(axis=0))
  except RuntimeError as error:  # it gives up after so many iterations
    raise ValueError(f'no shares are found: {error}') from error
  shares = weights * is_class.mean(axis=0)
  if not shares.any():
    raise ValueError(
      'no source example is given to any class that the target is given to.'
    )
  return shares / shares.sum()
