"""DAEL against plain NumPy: its terms, and the method as a whole."""

import jax
import numpy as np
import pytest
import tiny
import twins

from moda_jax.objectives.predictors import dael

CLASSES = 4


@pytest.fixture(autouse=True)
def float64():
  with jax.enable_x64(True):
    yield


def random_logits(*shape, seed=0):
  return np.random.default_rng(seed).normal(size=(*shape, CLASSES)) * 2


def predictions(logits):
  return np.array([twins.softmax(z) for z in logits])


@pytest.mark.parametrize('count', [1, 2, 3])
def test_experts_of_the_other_sources_learn_from_the_own_one(count):
  weak, strong = random_logits(count, 5), random_logits(count, count, 5, seed=1)
  found = dael.expert_consistency(weak_logits=weak, strong_logits=strong)
  expected = []
  for i in range(count):
    others = [predictions(strong[j, i]) for j in range(count) if j != i]
    if not others:
      expected.append(0.0)
      continue
    differences = np.mean(others, axis=0) - predictions(weak[i])
    expected.append(np.mean([d @ d for d in differences]))
  np.testing.assert_allclose(found, expected)


def test_the_most_confident_expert_teaches_all():
  weak, strong = random_logits(3, 8), random_logits(3, 8, seed=1)
  found = dael.confident_expert(
    weak_logits=weak, strong_logits=strong, threshold=0.8
  )
  losses = []
  for b in range(8):
    p = predictions(weak[:, b])
    teacher = max(range(3), key=lambda j: p[j].max())
    if p[teacher].max() >= 0.8:
      mean = predictions(strong[:, b]).mean(axis=0)
      losses.append(-np.log(mean[p[teacher].argmax()] + 1e-5))
  assert 0 < len(losses) < 8
  np.testing.assert_allclose(found, (sum(losses) / 8, len(losses) / 8))


def test_teachers_have_no_gradient():
  def consistency(weak, strong):
    return dael.expert_consistency(weak_logits=weak, strong_logits=strong).sum()

  def confident(weak, strong):
    return dael.confident_expert(
      weak_logits=weak, strong_logits=strong, threshold=0.5
    )[0]

  for loss, strong in (
    (consistency, random_logits(3, 3, 5, seed=1)),
    (confident, random_logits(3, 5, seed=1)),
  ):
    grads = jax.grad(loss, (0, 1))(random_logits(3, 5), strong)
    np.testing.assert_array_equal(grads[0], 0)
    assert np.abs(grads[1]).max() > 0.01


@pytest.mark.parametrize('sources', [1, 3])
def test_dael_is_its_twin(sources):
  method = tiny.make_method('dael', sources)
  batch = tiny.make_batch(sources)
  params, state = tiny.init(method, batch)
  loss, metrics, grads = tiny.loss_and_grads(method, params, state, batch)
  params = jax.tree.map(np.array, params)

  def answer(expert, x):
    head = twins.head(params['classifier'], expert)
    return twins.softmax(twins.dense(head, twins.encode(params, x)))

  expected, source, target = 0.0, batch['source'], batch['target']
  for i in range(sources):
    rows = zip(
      source['weak'][i], source['strong'][i], source['label'][i], strict=True
    )
    for weak, strong, y in rows:
      own = answer(i, weak)
      expected -= np.log(own[y]) / (8 * sources)
      others = [answer(j, strong) for j in range(sources) if j != i]
      if others:
        distance = np.sum((np.mean(others, axis=0) - own) ** 2)
        expected += distance / (8 * sources)
  taught = 0
  for weak, strong in zip(target['weak'], target['strong'], strict=True):
    p = max((answer(j, weak) for j in range(sources)), key=np.max)
    if p.max() >= 0.4:
      taught += 1
      mean = np.mean([answer(j, strong) for j in range(sources)], axis=0)
      expected -= 0.5 * np.log(mean[p.argmax()] + 1e-5) / 8
  np.testing.assert_allclose(loss, expected)
  assert metrics['experts_confident'] == taught / 8 > 0
  assert all(np.isfinite(g).all() for g in jax.tree.leaves(grads))
