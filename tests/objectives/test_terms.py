"""The terms against plain NumPy."""

import jax
import numpy as np
import pytest

from moda_jax.objectives.formulas import terms


@pytest.fixture(autouse=True)
def float64():
  with jax.enable_x64(True):
    yield


def log_softmax(logits):
  return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def random_logits(*shape):
  return np.random.default_rng(0).normal(size=shape) * 2


def test_class_losses():
  logits = random_logits(3, 4, 5)
  labels = np.random.default_rng(1).integers(0, 5, (3, 4))
  expected = [
    np.mean([-log_softmax(x)[y] for x, y in zip(*domain, strict=True)])
    for domain in zip(logits, labels, strict=True)
  ]
  found = terms.class_losses(logits=logits, labels=labels)
  np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize('domain', [terms.SOURCE, terms.TARGET])
def test_domain_losses(domain):
  logits = random_logits(3, 4, 2)
  expected = -log_softmax(logits)[..., domain].mean(axis=1)
  found = terms.domain_losses(logits=logits, domain=domain)
  np.testing.assert_allclose(found, expected)


def test_consistency_counts_confident_samples_and_averages_over_all():
  weak = np.log([[0.9, 0.05, 0.05], [0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
  strong = random_logits(3, 3)
  loss, kept = terms.consistency(
    weak_logits=weak, strong_logits=strong, threshold=0.7
  )
  expected = -(log_softmax(strong)[0, 0] + log_softmax(strong)[2, 2]) / 3
  np.testing.assert_allclose(loss, expected)
  np.testing.assert_allclose(kept, 2 / 3)


def test_consistency_wants_more_than_the_threshold():
  weak = np.zeros((4, 2))  # both classes at exactly one half
  loss, kept = terms.consistency(
    weak_logits=weak, strong_logits=random_logits(4, 2), threshold=0.5
  )
  assert loss == kept == 0


def test_no_gradient_flows_through_pseudo_labels():
  def loss(weak, strong):
    return terms.consistency(
      weak_logits=weak, strong_logits=strong, threshold=0.3
    )[0]

  weak, strong = random_logits(6, 3), random_logits(6, 3)
  grad_weak, grad_strong = jax.grad(loss, (0, 1))(weak, strong)
  np.testing.assert_array_equal(grad_weak, 0)
  assert np.abs(grad_strong).max() > 0.01


def test_sparsity_runs_from_equal_weights_to_one_source():
  assert terms.sparsity(alpha=np.full(4, 0.25)) == 0.25
  assert terms.sparsity(alpha=np.array([0.0, 1.0, 0.0])) == 1
