"""What a model shows of itself, which criteria judge."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

_ROUNDING = 1e-3  # that a row of probabilities may differ from 1 by


class Held(NamedTuple):
  """Labelled source examples that were kept out of training.

  Attributes:
    probabilities: predicted, `[N, C]`.
    labels: `[N]`, whole numbers from 0 to C − 1.
    features: of the extractor, `[N, F]`.
  """

  probabilities: np.ndarray
  labels: np.ndarray
  features: np.ndarray


class Observed(NamedTuple):
  """Predictions and features of a model; no labels of the target.

  Attributes:
    probabilities: predicted for target examples, `[N, C]`.
    features: of the same examples, `[N, F]`; None where no criterion asked
      for reads them.
    held: source examples kept out of training; None where there are none.
    weights: of the examples in `held`, see `sources.importance_weights`, `[n]`;
      None where they are still to be computed.
  """

  probabilities: np.ndarray
  features: np.ndarray | None = None
  held: Held | None = None
  weights: np.ndarray | None = None


def check_probabilities(x: np.ndarray, what: str = 'predictions') -> np.ndarray:
  """Returns probabilities `[N, C]` in float64; else raises ValueError."""
  x = check_rows(x, what)
  if x.shape[1] < 2:
    raise ValueError(f'{what} of shape {x.shape}: at least 2 classes needed.')
  if (x < 0).any() or np.abs(x.sum(axis=1) - 1).max() > _ROUNDING:
    raise ValueError(
      f'{what}: every row must hold probabilities that add to 1.'
    )
  return x


def stack_probabilities(predicted: Sequence[np.ndarray]) -> np.ndarray:
  """Returns predictions of K candidates `[K, N, C]`; else raises ValueError."""
  checked = [check_probabilities(p) for p in predicted]
  if not checked or any(p.shape != checked[0].shape for p in checked):
    raise ValueError(
      f'predictions of one shape are needed, not {[p.shape for p in checked]}.'
    )
  return np.stack(checked)


def check_rows(x: np.ndarray, what: str = 'features') -> np.ndarray:
  """Returns finite rows `[N, F]` in float64; else raises ValueError."""
  x = np.asarray(x)
  if x.ndim != 2 or 0 in x.shape or x.dtype.kind not in 'fiu':
    raise ValueError(
      f'{what} of type {x.dtype} and shape {x.shape}: numbers of shape [N, F], '
      'with at least one row and one column, are needed.'
    )
  x = x.astype(np.float64)
  if not np.isfinite(x).all():
    raise ValueError(f'{what}: some values are not finite.')
  return x


def check_labels(labels: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
  """Returns labels of predictions of a shape `[N, C]`; else raises ValueError.

  Args:
    labels: `[N]`, whole numbers from 0 to C − 1.
    shape: of the predictions that they belong to.
  """
  labels = np.asarray(labels)
  if labels.shape != shape[:1] or labels.dtype.kind not in 'iu':
    raise ValueError(
      f'labels of type {labels.dtype} and shape {labels.shape}: one whole '
      f'number for each of {shape[0]} predictions is needed.'
    )
  if labels.min() < 0 or labels.max() >= shape[1]:
    raise ValueError(f'labels must lie within 0..{shape[1] - 1}.')
  return labels
