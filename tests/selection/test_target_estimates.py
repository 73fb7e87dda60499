"""What is told of an unlabelled target: distance, class shares, what to label.

Twins are written from the formulae, without the solvers of the code.
"""

import itertools
import math

import numpy as np
import pytest

from moda_jax.selection import proportions
from moda_jax.selection.annotation import disagreement, most_useful
from moda_jax.selection.distance import proxy_distance
from moda_jax.selection.proportions import estimate_proportions


def newton(x, signs, ridge):
  """Fits the logistic regression by Newton's method; returns `[F + 1]`."""
  x = np.column_stack([x, np.ones(len(x))])
  penalty = np.diag([ridge] * (x.shape[1] - 1) + [0])
  at = np.zeros(x.shape[1])
  for _ in range(50):
    p = 1 / (1 + np.exp(-x @ at))
    gradient = x.T @ (p - (signs > 0)) / len(x) + penalty @ at
    hessian = (x.T * (p * (1 - p))) @ x / len(x) + penalty
    at -= np.linalg.solve(hessian, gradient)
  return at


def distance_twin(a, b, seed, ridge):
  rng = np.random.default_rng(seed)
  count = min(len(a), len(b)) // 2 * 2
  a, b = (list(x[rng.permutation(len(x))[:count]]) for x in (a, b))
  half, wrong = count // 2, 0
  for own, other in (
    (slice(0, half), slice(half, count)),
    (slice(half, count), slice(0, half)),
  ):
    x = np.array(a[own] + b[own])
    center, scale = x.mean(axis=0), x.std(axis=0)
    signs = np.array([-1] * half + [1] * half)
    at = newton((x - center) / scale, signs, ridge)
    for rows, sign in ((a[other], -1), (b[other], 1)):
      for row in rows:
        margin = np.append((row - center) / scale, 1) @ at
        wrong += margin * sign <= 0
  return 2 * (1 - 2 * min(0.5, wrong / (2 * count)))


@pytest.mark.parametrize('shift', [0.0, 0.5, 1.5, 20.0])
def test_the_distance_is_its_formula(shift):
  rng = np.random.default_rng(0)
  a, b = rng.normal(size=(41, 3)), shift + rng.normal(size=(60, 3))
  found = proxy_distance(a, b, seed=3, ridge=0.1)
  np.testing.assert_allclose(found, distance_twin(a, b, 3, 0.1), rtol=1e-12)


def test_the_distance_grows_from_0_to_2():
  rng = np.random.default_rng(1)
  a, b = rng.normal(size=(2, 400, 4))
  found = [proxy_distance(a, b + shift) for shift in (0, 0.3, 1, 30)]
  assert found == sorted(found)
  assert found[0] < 0.3
  assert found[-1] == 2
  # A classifier that is worse than chance shows no distance.
  mirrored = np.array([[0.0], [1.0]])
  assert 0 <= proxy_distance(mirrored, mirrored) <= 2


@pytest.mark.parametrize(
  'shapes', [((4, 3), (4, 2)), ((1, 3), (4, 3)), ((4, 3), (0, 3))]
)
def test_features_that_have_no_distance(shapes):
  with pytest.raises(ValueError, match='features'):
    proxy_distance(*(np.ones(shape) for shape in shapes))


def softmax(logits):
  return np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)


def proportions_twin(held, labels, target):
  """Tries every set of classes that may have a share."""
  classes = held.shape[1]
  confusion = np.zeros((classes, classes))
  for p, y in zip(held, labels, strict=True):
    confusion[:, y] += p / len(held)
  mean = sum(target) / len(target)
  best, weights = math.inf, None
  for size in range(1, classes + 1):
    for chosen in map(list, itertools.combinations(range(classes), size)):
      own, *_ = np.linalg.lstsq(confusion[:, chosen], mean, rcond=None)
      left = np.linalg.norm(confusion[:, chosen] @ own - mean)
      if (own >= 0).all() and left < best - 1e-12:
        best, weights = left, np.zeros(classes)
        weights[chosen] = own
  shares = [w * np.mean(labels == j) for j, w in enumerate(weights)]
  return np.array(shares) / sum(shares)


@pytest.mark.parametrize('seed', range(4))
def test_proportions_are_their_formula(seed):
  rng = np.random.default_rng(seed)
  held, target = (
    softmax(2 * rng.normal(size=(40, 4))),
    softmax(2 * rng.normal(size=(25, 4)) + [2, 0, 0, -2]),
  )
  labels = np.where(
    rng.random(40) < 0.7, held.argmax(axis=1), rng.integers(0, 4, 40)
  )
  found = estimate_proportions(held, labels, target)
  np.testing.assert_allclose(
    found, proportions_twin(held, labels, target), rtol=1e-8, atol=1e-12
  )


@pytest.mark.parametrize('hard', [False, True])
@pytest.mark.parametrize('shares', [[0.2, 0.3, 0.5], [0.05, 0.05, 0.9]])
def test_known_shifts_are_recovered(shares, hard):
  """Where classes look alike in both domains, errors do not matter."""
  rng = np.random.default_rng(0)

  def draw(labels):
    p = softmax(1.5 * np.eye(3)[labels] + rng.normal(size=(len(labels), 3)))
    return np.eye(3)[p.argmax(axis=1)] if hard else p

  labels = np.repeat([0, 1, 2], 20_000)
  counts = (np.array(shares) * 60_000).astype(int)
  target = draw(np.repeat([0, 1, 2], counts))
  found = estimate_proportions(draw(labels), labels, target)
  np.testing.assert_allclose(found, shares, atol=0.02)
  # The predictions alone are far from it.
  assert np.abs(target.mean(axis=0) - shares).max() > 0.05


def test_exact_proportions_and_a_class_without_examples():
  perfect = np.eye(4)[[0, 0, 1, 2]]
  target = np.eye(4)[[0, 1, 1, 1, 2]]
  found = estimate_proportions(perfect, np.array([0, 0, 1, 2]), target)
  np.testing.assert_allclose(found, [0.2, 0.6, 0.2, 0], atol=1e-12)


def test_proportions_of_what_does_not_fit():
  rows = np.eye(3)
  with pytest.raises(ValueError, match='3 classes'):
    estimate_proportions(rows, np.arange(3), np.eye(4))
  with pytest.raises(ValueError, match='labels'):
    estimate_proportions(rows, np.array([0, 1, 3]), rows)
  with pytest.raises(ValueError, match='no source example'):
    estimate_proportions(rows[:1], np.array([0]), rows[2:])


def test_shares_that_a_solver_does_not_find(monkeypatch):
  def give_up(*_):
    raise RuntimeError('Maximum number of iterations reached.')

  monkeypatch.setattr(proportions.optimize, 'nnls', give_up)
  with pytest.raises(ValueError, match='no shares are found: Maximum'):
    estimate_proportions(np.eye(3), np.arange(3), np.eye(3))


def test_disagreement_is_the_entropy_of_the_votes():
  rng = np.random.default_rng(2)
  predicted = softmax(rng.normal(size=(5, 30, 4)))
  for i, found in enumerate(disagreement(list(predicted))):
    votes = [int(np.argmax(p[i])) for p in predicted]
    shares = [votes.count(c) / 5 for c in set(votes)]
    expected = -sum(s * math.log(s) for s in shares)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def annotation_twin(predicted):
  """Sorts by turn within the class, then votes, then entropy."""
  count = predicted.shape[1]
  keys = []
  for i in range(count):
    votes = [int(np.argmax(p[i])) for p in predicted]
    shares = [votes.count(c) / len(votes) for c in set(votes)]
    mean = predicted[:, i].mean(axis=0)
    entropy = -sum(x * math.log(x) for x in mean)
    votes_entropy = -sum(s * math.log(s) for s in shares)
    keys.append((-round(votes_entropy, 9), -entropy, int(mean.argmax())))
  listed, seen = [], {}
  for i in sorted(range(count), key=lambda i: keys[i][:2]):
    turn = seen[keys[i][2]] = seen.get(keys[i][2], 0) + 1
    listed.append((turn, keys[i][:2], i))
  return [i for _, _, i in sorted(listed)]


@pytest.mark.parametrize('candidates', [1, 3])
def test_what_to_label_first(candidates):
  rng = np.random.default_rng(candidates)
  predicted = softmax(2 * rng.normal(size=(candidates, 40, 3)) + [1, 0, 0])
  found = most_useful(list(predicted), 15)
  assert list(found) == annotation_twin(predicted)[:15]
  classes = predicted.mean(axis=0)[found[:3]].argmax(axis=1)
  assert sorted(classes) == [0, 1, 2]
  assert sorted(most_useful(list(predicted), 99)) == list(range(40))


def test_candidates_for_other_examples_are_refused():
  with pytest.raises(ValueError, match='one shape'):
    most_useful([np.eye(3), np.eye(4)], 2)
  with pytest.raises(ValueError, match='one shape'):
    disagreement([])
