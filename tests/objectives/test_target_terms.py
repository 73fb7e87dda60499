"""AdaMatch, MCC, entropies and DAEL's terms against plain NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import twins

from moda_jax.objectives.formulas import adamatch, confusion, dael, entropies

CLASSES = 4


@pytest.fixture(autouse=True)
def float64():
  with jax.enable_x64(True):
    yield


def random_logits(*shape, seed=0):
  return np.random.default_rng(seed).normal(size=(*shape, CLASSES)) * 2


def predictions(logits):
  return np.array([twins.softmax(z) for z in logits])


def entropy(p):
  return -sum(x * np.log(x) for x in p)


def averaged(function, *arrays):
  """Averages the results for two halves of a batch, as two devices would."""
  halves = zip(*(np.split(x, 2, axis=-2) for x in arrays), strict=True)
  return jax.tree.map(
    lambda a, b: (a + b) / 2, *(function(*half) for half in halves)
  )


def test_adamatch_of_a_batch_in_two_halves():
  source, weak, strong = (
    random_logits(2, 6),
    random_logits(6, seed=1),
    random_logits(6, seed=2),
  )
  means = averaged(
    lambda s, w: adamatch.batch_means(source_logits=s, weak_logits=w),
    source,
    weak,
  )
  found = averaged(
    lambda w, s: adamatch.aligned_consistency(
      weak_logits=w, strong_logits=s, means=means, threshold=0.9
    ),
    weak,
    strong,
  )
  p_source, p_weak = predictions(source.reshape(-1, CLASSES)), predictions(weak)
  threshold = 0.9 * np.mean([p.max() for p in p_source])
  losses = []
  for p, z in zip(p_weak, strong, strict=True):
    q = p * p_source.mean(axis=0) / p_weak.mean(axis=0)
    q /= q.sum()
    if q.max() >= threshold:
      losses.append(-np.sum(q * np.log(twins.softmax(z))))
  assert 0 < len(losses) < 6
  np.testing.assert_allclose(found, (sum(losses) / 6, len(losses) / 6))


def test_adamatch_is_finite_where_a_class_is_never_predicted():
  logits = np.zeros((2, CLASSES))
  logits[:, 0] = -2000
  source = np.zeros((1, 2, CLASSES))
  source[..., 1:] = -2000  # and the sources have that class alone
  means = adamatch.batch_means(source_logits=source, weak_logits=logits)
  loss, kept = adamatch.aligned_consistency(
    weak_logits=logits, strong_logits=logits, means=means, threshold=0.9
  )
  assert loss == kept == 0


def test_adamatch_teaches_the_strong_view_alone():
  def loss(source, weak, strong):
    means = adamatch.batch_means(source_logits=source, weak_logits=weak)
    return adamatch.aligned_consistency(
      weak_logits=weak, strong_logits=strong, means=means, threshold=0.1
    )[0]

  grads = jax.grad(loss, (0, 1, 2))(
    random_logits(2, 6), random_logits(6, seed=1), random_logits(6, seed=2)
  )
  assert not grads[0].any()
  assert not grads[1].any()
  assert np.abs(grads[2]).max() > 0.01


@pytest.mark.parametrize(
  ('progress', 'expected'), [(0, 0), (0.125, 0.5 - 0.5**1.5), (0.25, 0.5)]
)
def test_adamatch_grows_until_half_of_training(progress, expected):
  found = adamatch.ramp(jnp.asarray(progress, float))
  np.testing.assert_allclose(found, expected, atol=1e-15)
  assert adamatch.ramp(0.5 + progress) == 1


def test_mcc_of_a_batch_in_two_halves():
  logits, temperature = random_logits(6), 2.5
  correlation = averaged(
    lambda z: confusion.class_correlation(logits=z, temperature=temperature),
    logits,
  )
  found = confusion.confusion(correlation=correlation)
  p = predictions(logits / temperature)
  weights = np.array([1 + np.exp(-entropy(row)) for row in p])
  weights *= len(p) / weights.sum()
  c = p.T @ np.diag(weights) @ p
  c /= c.sum(axis=1, keepdims=True)
  off = [c[j, k] for j, k in np.ndindex(c.shape) if j != k]
  np.testing.assert_allclose(found, sum(off) / CLASSES)


def test_mcc_has_a_finite_gradient_where_a_class_is_never_predicted():
  def loss(logits):
    return confusion.confusion(
      correlation=confusion.class_correlation(logits=logits, temperature=1.0)
    )

  logits = random_logits(6)
  for low in (-20.0, -50.0, -2000.0):
    logits[:, 0] = low
    for dtype in (np.float32, np.float64):
      value, grad = jax.value_and_grad(loss)(logits.astype(dtype))
      assert 0 < value < 1
      assert np.isfinite(grad).all()


def test_entropies():
  logits = random_logits(6)
  p = predictions(logits)
  expected = [entropy(row) for row in p]
  np.testing.assert_allclose(entropies.entropies(logits=logits), expected)
  found = entropies.entropy_of(probabilities=p.mean(axis=0))
  np.testing.assert_allclose(found, entropy(p.mean(axis=0)))


def test_entropies_have_a_finite_gradient_where_a_class_is_impossible():
  def certain(logits):
    mean = jax.nn.softmax(logits).mean(axis=0)
    return entropies.entropies(logits=logits).mean() - entropies.entropy_of(
      probabilities=mean
    )

  logits = np.array([[0.0, -2000.0, 1.0], [0.5, -2000.0, 2.0]])
  value, grad = jax.value_and_grad(certain)(logits)
  assert value < 0
  assert np.isfinite(grad).all()


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
