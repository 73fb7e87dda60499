"""MMD, CORAL and CDAN's maps against plain NumPy."""

import jax
import numpy as np
import pytest
import twins

from moda_jax.objectives.formulas import cdan, coral, mmd


@pytest.fixture(autouse=True)
def float64():
  with jax.enable_x64(True):
    yield


def random_features(*shape, seed=0):
  return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize('unbiased', [False, True])
def test_mmd_of_each_source(unbiased):
  source, target = random_features(3, 4, 5), random_features(6, 5, seed=1)
  found = mmd.mmd_to_target(source=source, target=target, unbiased=unbiased)
  expected = [twins.mmd(domain, target, unbiased) for domain in source]
  np.testing.assert_allclose(found, expected)


def test_only_the_unbiased_mmd_has_mean_zero_for_equal_distributions():
  samples = random_features(400, 2, 6, 3)
  unbiased = [mmd.squared_mmd(x, y, unbiased=True) for x, y in samples]
  error = np.std(unbiased) / np.sqrt(len(samples))
  assert abs(np.mean(unbiased)) < 4 * error
  assert np.mean([mmd.squared_mmd(x, y) for x, y in samples]) > 10 * error


def scatter_of_all(domains):
  """Computes scatter in two halves of the batch, as two devices would."""
  halves = np.split(domains, 2, axis=1)
  mean = sum(half.mean(axis=1) for half in halves) / 2
  return sum(coral.scatter(features=half, mean=mean) for half in halves) / 2


def test_coral_of_a_batch_in_two_halves():
  domains = random_features(3, 8, 5) * np.arange(1, 4)[:, None, None]
  scatter = scatter_of_all(domains)
  found = coral.covariance_distances(
    source=scatter[:-1], target=scatter[-1], count=8
  )
  target = np.cov(domains[-1].T)
  expected = [
    np.sum((np.cov(x.T) - target) ** 2) / (4 * 5**2) for x in domains[:-1]
  ]
  np.testing.assert_allclose(found, expected)


def test_coral_of_single_examples_is_finite():
  scatter = scatter_of_all(random_features(3, 2, 5))
  distances = coral.covariance_distances(
    source=scatter[:-1], target=scatter[-1], count=1
  )
  assert np.isfinite(distances).all()


def test_cdan_takes_every_product_of_class_and_feature():
  features, logits = random_features(2, 4, 5), random_features(2, 4, 3, seed=1)
  found = cdan.condition(features=features, logits=logits)
  for i, j in np.ndindex(2, 4):
    g = twins.softmax(logits[i, j])
    expected = np.outer(g, features[i, j]).ravel()
    np.testing.assert_allclose(found[i, j], expected)


def test_cdan_maps_large_products_at_random():
  features, logits = random_features(4, 500), random_features(4, 10, seed=1)
  maps = cdan.draw_maps(jax.random.key(0), 10, 500)
  found = cdan.condition(features=features, logits=logits, maps=maps)
  for row, f, z in zip(found, features, logits, strict=True):
    expected = (maps['features'].T @ f) * (maps['classes'].T @ twins.softmax(z))
    np.testing.assert_allclose(row, expected / np.sqrt(len(expected)))


def test_cdan_draws_maps_above_4096_products_alone():
  key = jax.random.key(0)
  assert cdan.draw_maps(key, 16, 256) is None
  assert cdan.draw_maps(key, 16, 257) is not None


def test_random_maps_keep_inner_products_in_the_mean():
  """⟨(f, g), (f', g')⟩ estimates ⟨f, f'⟩⟨g, g'⟩, as the paper proves."""
  features = random_features(2, 40) + 1
  logits = random_features(2, 3, seed=1)
  estimates = []
  for seed in range(20):
    draw = jax.random.normal
    one, other = jax.random.split(jax.random.key(seed))
    maps = {
      'features': draw(one, (40, cdan.RANDOM_SIZE)),
      'classes': draw(other, (3, cdan.RANDOM_SIZE)),
    }
    x = cdan.condition(features=features, logits=logits, maps=maps)
    estimates.append(x[0] @ x[1])
  g = [twins.softmax(z) for z in logits]
  expected = (features[0] @ features[1]) * (g[0] @ g[1])
  error = np.std(estimates) / np.sqrt(len(estimates))
  assert abs(np.mean(estimates) - expected) < 4 * error
  assert error < 0.2 * expected


def test_cdan_has_no_gradient_through_predictions():
  def total(features, logits):
    return (cdan.condition(features=features, logits=logits) ** 2).sum()

  grads = jax.grad(total, (0, 1))(
    random_features(4, 5), random_features(4, 3, seed=1)
  )
  assert np.abs(grads[0]).max() > 0.01
  np.testing.assert_array_equal(grads[1], 0)
