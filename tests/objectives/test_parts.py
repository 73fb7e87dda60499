"""What each part adds to the loss, against NumPy: weight, sign and examples."""

import jax
import numpy as np
import pytest
import tiny
import twins

STEP = 4
STEPS = 10


@pytest.fixture(autouse=True)
def float64():
  with jax.enable_x64(True):
    yield


def run(*names, **values):
  """Returns the loss of these parts, and what a twin needs to know."""
  method, batch = tiny.make_composition(names, **values), tiny.make_batch()
  method.total_steps = STEPS
  params, state = tiny.init(method, batch)
  loss, (metrics, _) = method.loss_and_aux(
    params, state, batch, jax.random.key(0), STEP
  )
  return float(loss), metrics, params, batch


def base_loss(params, batch):
  source = batch['source']
  return twins.mean_class_loss(params, source['weak'], source['label'])


def encodings(params, batch):
  source = [
    [twins.encode(params, x) for x in d] for d in batch['source']['weak']
  ]
  target = [twins.encode(params, x) for x in batch['target']['weak']]
  return np.array(source), np.array(target)


def probabilities(params, examples, temperature=1.0):
  z = [twins.encode(params, x) for x in examples]
  logits = [twins.dense(params['classifier'], x) for x in z]
  return np.array([twins.softmax(x / temperature) for x in logits])


def entropy(p):
  return -np.sum(p * np.log(p), axis=-1)


def test_mmd_is_the_mean_over_the_sources():
  loss, _, params, batch = run(
    'uniform', 'mmd', 'none', 'shared', mmd_weight=0.7
  )
  source, target = encodings(params, batch)
  added = 0.7 * np.mean([twins.mmd(own, target, True) for own in source])
  np.testing.assert_allclose(loss, base_loss(params, batch) + added)


def test_coral_is_weighted_by_the_sources():
  """The largest of class loss and distance together leads."""
  loss, metrics, params, batch = run(
    'hard_max', 'coral', 'none', 'shared', coral_weight=50.0
  )
  source, target = encodings(params, batch)
  features = target.shape[1]
  distances = [
    np.sum((np.cov(own.T) - np.cov(target.T)) ** 2) / (4 * features**2)
    for own in source
  ]
  losses = [metrics[f'class/{name}'] for name in 'abc']
  expected = max(a + 50 * d for a, d in zip(losses, distances, strict=True))
  np.testing.assert_allclose(loss, expected)


def test_cdan_has_the_loss_of_a_discriminator_on_products():
  loss, _, params, batch = run('uniform', 'cdan', 'none', 'shared', mu_d=0.3)
  source, target = encodings(params, batch)

  def losses(z, examples, domain):
    p = probabilities(params, examples)
    pairs = [np.outer(a, b).ravel() for a, b in zip(p, z, strict=True)]
    found = [twins.relu_net(params['discriminator'], x) for x in pairs]
    return np.mean([-np.log(twins.softmax(x)[domain]) for x in found])

  each = [
    losses(z, x, 0)
    for z, x in zip(source, batch['source']['weak'], strict=True)
  ]
  whole = np.mean(each) + losses(target, batch['target']['weak'], 1)
  np.testing.assert_allclose(loss, base_loss(params, batch) + 0.3 * whole)


def test_entropy_and_information():
  names = ('uniform', 'none', 'entropy+information', 'shared')
  loss, _, params, batch = run(
    *names, entropy_weight=0.3, information_weight=0.6
  )
  p = probabilities(params, batch['target']['weak'])
  mean = entropy(p).mean()
  added = 0.3 * mean + 0.6 * (mean - entropy(p.mean(axis=0)))
  np.testing.assert_allclose(loss, base_loss(params, batch) + added)


def test_mcc():
  loss, _, params, batch = run(
    *('uniform', 'none', 'mcc', 'shared'), mcc_weight=0.4, mcc_temperature=2.0
  )
  p = probabilities(params, batch['target']['weak'], temperature=2.0)
  c = sum((1 + np.exp(-entropy(row))) * np.outer(row, row) for row in p)
  c /= c.sum(axis=1, keepdims=True)
  added = 0.4 * (c.sum() - np.trace(c)) / len(c)
  np.testing.assert_allclose(loss, base_loss(params, batch) + added)


def test_adamatch_ramps_up():
  loss, _, params, batch = run(
    *('uniform', 'none', 'adamatch', 'shared'),
    adamatch_weight=0.8,
    adamatch_tau=0.7,
  )
  weak, strong = (
    probabilities(params, batch['target'][view]) for view in ('weak', 'strong')
  )
  source = np.concatenate(
    [probabilities(params, domain) for domain in batch['source']['weak']]
  )
  q = weak * source.mean(axis=0) / weak.mean(axis=0)
  q /= q.sum(axis=1, keepdims=True)
  kept = q.max(axis=1) >= 0.7 * source.max(axis=1).mean()
  assert kept.sum() > 0
  term = np.mean(kept * -np.sum(q * np.log(strong), axis=1))
  ramp = 0.5 - 0.5 * np.cos(min(np.pi, 2 * np.pi * STEP / STEPS))
  expected = base_loss(params, batch) + 0.8 * ramp * term
  np.testing.assert_allclose(loss, expected)


def test_dael():
  names = ('uniform', 'none', 'dael', 'taught')
  loss, _, params, batch = run(*names, dael_weight=0.5, dael_tau=0.5)

  def answers(j, examples):
    own = params | {'classifier': twins.head(params['classifier'], j)}
    return probabilities(own, examples)

  whole = 0.0
  sources, labels = twins.sources_of(batch)
  for i in range(3):
    own, strong = answers(i, sources[i]), batch['source']['strong'][i]
    others = np.mean([answers(j, strong) for j in range(3) if j != i], axis=0)
    whole += np.mean(-np.log(own[np.arange(8), labels[i]])) / 3
    whole += np.mean(np.sum((others - own) ** 2, axis=1)) / 3
  weak, strong = (
    np.array([answers(j, batch['target'][view]) for j in range(3)])
    for view in ('weak', 'strong')
  )
  terms = []
  for b in range(8):
    surest = weak[:, b].max(axis=1).argmax()
    taught = strong[:, b].mean(axis=0)[weak[surest, b].argmax()]
    kept = weak[surest, b].max() >= 0.5
    terms.append(-np.log(taught + 1e-5) if kept else 0.0)
  assert np.count_nonzero(terms) > 0
  np.testing.assert_allclose(loss, whole + 0.5 * np.mean(terms))
