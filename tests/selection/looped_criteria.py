"""The criteria written from their formulae, in plain loops."""

import math

import numpy as np


def entropy(p):
  return -sum(x * math.log(x) for x in p if x > 0)


def mean_entropy(rows):
  return sum(entropy(p) for p in rows) / len(rows)


def mean(rows):
  return [sum(column) / len(rows) for column in zip(*rows, strict=True)]


def information(rows):
  return entropy(mean(rows)) - mean_entropy(rows)


def nuclear_norm(rows):
  """Takes the singular values as roots of the eigenvalues of PᵀP."""
  count, classes = np.shape(rows)
  gram = np.zeros((classes, classes))
  for p in rows:
    for a in range(classes):
      for b in range(classes):
        gram[a, b] += p[a] * p[b]
  total = sum(math.sqrt(max(0, x)) for x in np.linalg.eigvalsh(gram))
  return total / math.sqrt(count * min(count, classes))


def cosine(a, b):
  dot = sum(x * y for x, y in zip(a, b, strict=True))
  return dot / math.sqrt(sum(x * x for x in a) * sum(x * x for x in b))


def density(rows, temperature=0.05):
  total = 0.0
  for i, a in enumerate(rows):
    others = [b for j, b in enumerate(rows) if j != i]
    powers = [math.exp(cosine(a, b) / temperature) for b in others]
    total += entropy([x / sum(powers) for x in powers])
  return total / len(rows)


def importance_weights(source, target, ridge=1e-3):
  """Fits the logistic regression by Newton's method, example by example."""
  rows = [*source, *target]
  belongs = [0] * len(source) + [1] * len(target)
  width = len(rows[0])
  center = mean(rows)
  scale = [
    math.sqrt(sum((x[f] - center[f]) ** 2 for x in rows) / len(rows)) or 1
    for f in range(width)
  ]
  scaled = [
    [(x[f] - center[f]) / scale[f] for f in range(width)] + [1] for x in rows
  ]
  penalty = np.diag([ridge] * width + [0])
  at = np.zeros(width + 1)
  for _ in range(50):
    gradient, hessian = penalty @ at, penalty.copy()
    for x, y in zip(scaled, belongs, strict=True):
      p = 1 / (1 + math.exp(-np.dot(x, at)))
      gradient += (p - y) * np.array(x) / len(rows)
      hessian += p * (1 - p) * np.outer(x, x) / len(rows)
    at -= np.linalg.solve(hessian, gradient)
  ratio = len(source) / len(target)
  weights = []
  for x in scaled[: len(source)]:
    p = 1 / (1 + math.exp(-np.dot(x, at)))
    weights.append(ratio * p / (1 - p))
  return weights


def control_variate(weights, losses):
  """Takes variance and covariance of samples, with one fewer below."""
  count = len(weights)
  products = [w * x for w, x in zip(weights, losses, strict=True)]
  mean_w, mean_p = sum(weights) / count, sum(products) / count
  covariance = sum(
    (p - mean_p) * (w - mean_w) for p, w in zip(products, weights, strict=True)
  ) / (count - 1)
  variance = sum((w - mean_w) ** 2 for w in weights) / (count - 1)
  eta = -covariance / variance
  return mean_p + eta * mean_w - eta


def dev_risk(held, target):
  weights = importance_weights(held.features, target)
  pairs = zip(held.probabilities, held.labels, strict=True)
  return control_variate(weights, [float(best(p) != y) for p, y in pairs])


def best(p):
  return max(range(len(p)), key=lambda c: p[c])


def weighted_accuracy(held, target):
  weights = importance_weights(held.features, target)
  pairs = zip(held.probabilities, held.labels, strict=True)
  right = [best(p) == y for p, y in pairs]
  counted = sum(w for w, r in zip(weights, right, strict=True) if r)
  return counted / sum(weights)


def agreements(predicted):
  shares = []
  for own in predicted:
    same = 0
    for i, p in enumerate(own):
      together = [
        sum(other[i][c] for other in predicted) for c in range(len(p))
      ]
      same += list(p).index(max(p)) == together.index(max(together))
    shares.append(same / len(own))
  return shares
