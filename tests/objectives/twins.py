"""Plain NumPy twins of MADA, MoE and M3SDA, example by example.

Written from the papers with loops; they share no code with the package. The
networks are those of `tiny`: dense layers with tanh between them.
"""

import itertools

import numpy as np


def dense(params, x):
  names = sorted(params)
  for i, name in enumerate(names):
    x = (np.tanh(x) if i else x) @ params[name]['kernel'] + params[name]['bias']
  return x


def relu_net(params, x):
  names = sorted(params)
  for i, name in enumerate(names):
    x = (np.maximum(x, 0) if i else x) @ params[name]['kernel']
    x = x + params[name]['bias']
  return x


def softmax(x):
  e = np.exp(x - x.max())
  return e / e.sum()


def head(params, index):
  return {
    layer: {k: v[index] for k, v in arrays.items()}
    for layer, arrays in params.items()
  }


def mean_class_loss(params, sources, labels):
  return np.mean(
    [
      -np.log(softmax(dense(params['classifier'], encode(params, x)))[y])
      for domain, ys in zip(sources, labels, strict=True)
      for x, y in zip(domain, ys, strict=True)
    ]
  )


def mada(params, batch, progress, weights=None):
  """Returns the paper's objective and the weights ŷ it used.

  `weights` fixes ŷ, through which no gradient flows, for finite differences.
  """
  sources, labels = batch['source']['weak'], batch['source']['label']
  examples = [(x, 0) for domain in sources for x in domain]
  examples += [(x, 1) for x in batch['target']['weak']]
  class_loss = mean_class_loss(params, sources, labels)
  encodings = [encode(params, x) for x, _ in examples]
  if weights is None:
    weights = [softmax(dense(params['classifier'], z)) for z in encodings]
  total = 0.0
  for (_, d), z, y_hat in zip(examples, encodings, weights, strict=True):
    for k, weight in enumerate(y_hat):
      logits = relu_net(head(params['discriminator'], k), weight * z)
      total += -np.log(softmax(logits)[d])
  strength = 2 / (1 + np.exp(-10 * progress)) - 1
  return class_loss, strength * total / len(examples), weights


def encode(params, x):
  return dense(params['extractor'], x)


def class_means(params, batch):
  """Returns mean encodings by source and class; None where there is none."""
  means = []
  for domain, ys in zip(*sources_of(batch), strict=True):
    own = []
    for k in range(3):
      members = [
        encode(params, x) for x, y in zip(domain, ys, strict=True) if y == k
      ]
      own.append(np.mean(members, axis=0) if members else None)
    means.append(own)
  return means


def sources_of(batch):
  return batch['source']['weak'], batch['source']['label']


def expert_confidence(params, means, z, j):
  distances = sorted(
    np.linalg.norm(params['metric'][j, k].T @ (z - mean))
    for k, mean in enumerate(means[j])
    if mean is not None
  )
  return distances[1] - distances[0]


def moe(params, batch, config, means):
  """Returns the total loss; no gradient flows through the given `means`."""
  sources, labels = sources_of(batch)
  count = len(sources)
  mtl = mixtures = entropy = 0.0
  for i in range(count):
    own, mixed, entropies = [], [], []
    for x, y in zip(sources[i], labels[i], strict=True):
      z = encode(params, x)
      p = [
        softmax(dense(head(params['classifier'], j), z)) for j in range(count)
      ]
      own.append(-np.log(p[i][y]))
      others = [j for j in range(count) if j != i]
      if others:
        scores = [expert_confidence(params, means, z, j) for j in others]
        alpha = softmax(np.clip(scores, 0.01, 2))
        mixed.append(
          -np.log(sum(a * p[j][y] for a, j in zip(alpha, others, strict=True)))
        )
        entropies.append(-np.sum(alpha * np.log(alpha)))
    mtl += np.mean(own)
    if mixed:
      mixtures += np.mean(mixed)
      entropy += np.mean(entropies) / count
  alignment = sum(
    mmd(
      [encode(params, x) for x in domain],
      [encode(params, x) for x in batch['target']['weak']],
    )
    for domain in sources
  )
  return (
    config.moe_weight * mixtures
    + (1 - config.moe_weight) * mtl
    + config.moe_alignment * alignment
    + config.moe_entropy * entropy
  )


def mmd(xs, ys, unbiased=False):
  widths = [10.0**e for e in range(-6, 0)] + [1, 5, 10, 15, 20, 25, 30, 35]
  widths += [10.0**e for e in range(2, 7)]

  def kernel(a, b):
    return np.exp(-np.sum((a - b) ** 2) / (2 * np.array(widths))).sum()

  def mean(first, second):
    return np.mean([[kernel(a, b) for b in second] for a in first])

  def own(sample):
    if not unbiased:
      return mean(sample, sample)
    pairs = itertools.permutations(sample, 2)
    return np.mean([kernel(a, b) for a, b in pairs])

  return own(xs) + own(ys) - 2 * mean(xs, ys)


def moe_predict(params, means, x):
  z, count = encode(params, x), len(means)
  alpha = softmax(
    np.array([expert_confidence(params, means, z, j) for j in range(count)])
  )
  p = [softmax(dense(head(params['classifier'], j), z)) for j in range(count)]
  return sum(a * q for a, q in zip(alpha, p, strict=True))


def m3sda(params, batch, weight):
  sources, labels = sources_of(batch)
  count = len(sources)
  loss = 0.0
  for i in range(count):
    own = head(params['classifier'], i)
    loss += np.mean(
      [
        -np.log(softmax(dense(own, encode(params, x)))[y])
        for x, y in zip(sources[i], labels[i], strict=True)
      ]
    )
  domains = [*sources, batch['target']['weak']]
  distance = 0.0
  for k in (1, 2):
    moment = [
      np.mean([encode(params, x) ** k for x in domain], axis=0)
      for domain in domains
    ]
    distance += np.mean(
      [np.linalg.norm(moment[i] - moment[-1]) for i in range(count)]
    )
    pairs = [(i, j) for i in range(count) for j in range(i)]
    if pairs:
      distance += np.mean(
        [np.linalg.norm(moment[i] - moment[j]) for i, j in pairs]
      )
  return loss + weight * distance
