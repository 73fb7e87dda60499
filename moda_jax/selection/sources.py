"""Criteria from labelled source examples that were kept out of training."""

import numpy as np
from scipy import optimize, special

from moda_jax.selection.observed import (
  Held,
  check_labels,
  check_probabilities,
  check_rows,
)

_RIDGE = 1e-3
_ALIKE = 1e-6  # of their mean, below which weights differ by rounding alone


def source_accuracy(held: Held) -> float:
  """Returns the share of held-out examples classified correctly.

  (1/n) Σ_i [argmax_c p_ic = y_i]; higher is better. It knows nothing of the
  target, and is right where domains are alike: Ben-David et al., A theory of
  learning from different domains, 2010.

  Args:
    held: its features are not read.
  """
  return float(_find_right(held).mean())


def weighted_accuracy(held: Held, weights: np.ndarray) -> float:
  """Returns the accuracy on held-out examples that look like the target's.

  Σ_i w_i [argmax_c p_ic = y_i] / Σ_i w_i with `importance_weights` w; higher is
  better. Sugiyama et al., Covariate shift adaptation by importance weighted
  cross validation, JMLR 2007; by a classifier of features as in You et al.,
  Towards accurate model selection in deep unsupervised domain adaptation, ICML
  2019. Dividing by the sum of the weights, not by their number, keeps it within
  0..1.

  Args:
    held: the examples; their features are not read.
    weights: w, `[n]`.
  """
  right = _find_right(held)
  _check_weights(weights, len(right))
  return float(weights @ right / weights.sum())


def validation_risk(held: Held, weights: np.ndarray) -> float:
  """Returns the weighted risk, corrected by how the weights vary.

  mean(wL) + η mean(w) − η, where L_i = [argmax_c p_ic ≠ y_i], w are the
  `importance_weights` and η = −Cov(wL, w) / Var(w); lower is better. Deep
  embedded validation (DEV), You et al., Towards accurate model selection in
  deep unsupervised domain adaptation, ICML 2019: as the mean of w is 1 in
  expectation, it is a control variate, by which the estimate varies less. It
  can lie below 0. The paper fits the classifier behind w to sources that were
  trained on; here it is fitted to the ones held out, which w belongs to.

  Args:
    held: the examples; their features are not read.
    weights: w, `[n]`.
  """
  wrong = ~_find_right(held)
  _check_weights(weights, len(wrong))
  weighted = weights * wrong
  deviations = weights - weights.mean()
  if np.abs(deviations).max() < _ALIKE * weights.mean():
    return float(weighted.mean())  # nothing is to be corrected
  eta = -(weighted * deviations).mean() / weights.var()
  return float(weighted.mean() + eta * weights.mean() - eta)


def _check_weights(weights: np.ndarray, count: int) -> None:
  if np.shape(weights) != (count,):
    raise ValueError(
      f'weights of shape {np.shape(weights)} for {count} predictions.'
    )


def importance_weights(
  source: np.ndarray, target: np.ndarray, ridge: float = _RIDGE
) -> np.ndarray:
  """Returns w_i = (n_s / n_t) · p(T | x_i) / p(S | x_i) of source rows, `[N]`.

  p is a logistic regression on the features, each scaled to mean 0 and
  deviation 1 over both domains; a, b minimise the mean of −ln p(own domain)
  + (ridge / 2) |a|².

  Args:
    source: features, `[N, F]`.
    target: features, `[M, F]`.
    ridge: above 0, so that domains which can be separated have finite weights.
  """
  source = check_rows(source, 'source features')
  target = check_rows(target, 'target features')
  if source.shape[1] != target.shape[1]:
    raise ValueError(
      f'source features of shape {source.shape} beside those of the target of '
      f'shape {target.shape}: as many columns are needed.'
    )
  if not ridge > 0:
    raise ValueError(f'ridge = {ridge} must be above 0.')
  x = np.concatenate([source, target])
  deviation = x.std(axis=0)
  x = (x - x.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
  signs = np.repeat([-1.0, 1.0], [len(source), len(target)])
  *slopes, offset = separate(x, signs, ridge)
  odds = np.exp(x[: len(source)] @ slopes + offset)  # p(T | x) / p(S | x)
  return odds * len(source) / len(target)


def separate(x: np.ndarray, signs: np.ndarray, ridge: float) -> np.ndarray:
  """Returns slopes a and offset b `[F + 1]` of a logistic regression.

  They minimise the mean of ln(1 + exp(−s(ax + b))) + (ridge / 2) |a|².

  Args:
    x: `[N, F]`.
    signs: s, −1 or 1 for each row, `[N]`.
    ridge: above 0, so that rows which can be separated have finite slopes.
  """

  def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
    slopes, offset = at[:-1], at[-1]
    margins = signs * (x @ slopes + offset)
    value = np.logaddexp(0, -margins).mean() + ridge / 2 * slopes @ slopes
    slope = -signs * special.expit(-margins) / len(x)
    gradient = np.append(x.T @ slope + ridge * slopes, slope.sum())
    return float(value), gradient

  start = np.zeros(x.shape[1] + 1)
  options = {'maxiter': 1000, 'gtol': 1e-8, 'ftol': 1e-15}
  found = optimize.minimize(
    loss, start, jac=True, method='L-BFGS-B', options=options
  )
  return np.asarray(found.x)


def _find_right(held: Held) -> np.ndarray:
  p = check_probabilities(held.probabilities, 'predictions for sources')
  labels = check_labels(held.labels, p.shape)
  return p.argmax(axis=1) == labels
