"""Mixtures of two examples, which say where the borders of classes lie."""

from typing import NamedTuple

import numpy as np

from moda_jax.selection.observed import (
  Mixed,
  check_labels,
  check_probabilities,
)

_MOST = 1_000  # pairs of each kind
_SHARE = 0.55  # of the first of two examples


class Pairs(NamedTuple):
  """Places of examples that are mixed.

  Attributes:
    first: of those that dominate, `[K]`.
    second: of the others, `[K]`.
  """

  first: np.ndarray
  second: np.ndarray


def mixture_accuracy(mixed: Mixed) -> float:
  """Returns how often a mixture is of the class of what dominates it.

  (A_s + A_d) / 2, where A is the share of mixtures λ x_i + (1 − λ) x_j that are
  given the class predicted for x_i, among pairs with the same predicted class
  and with different ones; higher is better. The former say whether there is
  nothing else within a class, the latter whether borders lie between classes.
  MixVal of Hu et al., Mixed samples as probes for unsupervised model selection
  in domain adaptation, NeurIPS 2023, who take the mean of a model's places by
  either; the mean of both themselves needs no other models.

  Args:
    mixed: with pairs of both kinds.
  """
  p = check_probabilities(mixed.probabilities, 'predictions for mixtures')
  labels, others = (check_labels(y, p.shape) for y in mixed[1:])
  same = labels == others
  if same.all() or not same.any():
    raise ValueError(
      'mixtures of examples with the same predicted class and with different '
      'ones are needed.'
    )
  right = p.argmax(axis=1) == labels
  return float((right[same].mean() + right[~same].mean()) / 2)


def draw_pairs(classes: np.ndarray, most: int = _MOST, seed: int = 0) -> Pairs:
  """Returns pairs of the same class and pairs of different ones.

  In each kind an example is the first of one pair at most.

  Args:
    classes: predicted, `[N]`.
    most: how many pairs of each kind at most.
    seed: of the order in which examples are taken.
  """
  order = np.random.default_rng(seed).permutation(len(classes))
  following = np.roll(order, -1)
  differ = classes[order] != classes[following]
  together = order[np.argsort(classes[order], kind='stable')]
  partner = np.empty_like(order)
  partner[together] = np.roll(together, -1)  # the next one of the class
  same = (partner[order] != order) & (classes[order] == classes[partner[order]])
  # Of the last one of a class it is of the next class; of a single class, the
  # first one.
  kinds = [(order, partner[order], same), (order, following, differ)]
  return Pairs(
    np.concatenate([first[kept][:most] for first, _, kept in kinds]),
    np.concatenate([second[kept][:most] for _, second, kept in kinds]),
  )


def mix(
  first: np.ndarray, second: np.ndarray, share: float = _SHARE
) -> np.ndarray:
  """Returns λ a + (1 − λ) b of arrays of one shape, in their type.

  Args:
    first: a; bytes are rounded.
    second: b.
    share: λ.
  """
  mixed = share * first.astype(np.float32) + (1 - share) * second
  if first.dtype.kind in 'iu':
    mixed = np.rint(mixed)
  return mixed.astype(first.dtype)
