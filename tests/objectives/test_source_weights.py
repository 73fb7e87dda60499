"""Source weights against brute force, SciPy and hand-made cases."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from moda_jax.objectives import source_weights

OPTIONS = {
  source_weights.Softmax: source_weights.SoftmaxOptions,
  source_weights.Relative: source_weights.SoftmaxOptions,
  source_weights.Floored: source_weights.FlooredOptions,
  source_weights.Projected: source_weights.ProjectedOptions,
  source_weights.Darn: source_weights.DarnOptions,
}


@pytest.fixture(autouse=True)
def float64():
  with jax.enable_x64(True):
    yield


def make(kind, count=3, **values):
  return kind(OPTIONS[kind](**values), count)


def weigh(weights, losses=(1.0, 1.0, 1.0), step=0, params=None, state=None):
  """Returns α and the next state, as a forward pass gives and keeps them."""
  forward = types.SimpleNamespace(params=params, state=state or {}, step=step)
  return weights(forward, jnp.asarray(losses)), forward.state


def minimise(objective, count):
  """Minimises over the simplex by SciPy, from its centre."""
  found = scipy.optimize.minimize(
    objective,
    np.full(count, 1 / count),
    method='SLSQP',
    bounds=[(0, 1)] * count,
    constraints={'type': 'eq', 'fun': lambda a: a.sum() - 1},
    options={'ftol': 1e-14, 'maxiter': 500},
  )
  return found.x


CASES = [np.random.default_rng(seed).uniform(-1, 3, 4) for seed in range(6)]
CASES += [np.zeros(3), np.array([0.39, 1.95, 1.98]), np.array([0.5])]


@pytest.mark.parametrize('h', CASES)
@pytest.mark.parametrize('mu_s', [0.05, 0.2, 2.0])
def test_projected_weights_minimise_the_paper_s_objective(h, mu_s):
  weights = make(source_weights.Projected, len(h), mu_s=mu_s)
  found = weights.solve(jnp.asarray(h))
  expected = minimise(lambda a: h @ a + mu_s * a @ a, len(h))
  np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize('h', CASES)
@pytest.mark.parametrize('gamma', [0.1, 0.5, 3.0])
def test_darn_s_weights_minimise_its_objective(h, gamma):
  weights = make(source_weights.Darn, len(h), darn_gamma=gamma)
  found = weights.solve(jnp.asarray(h))
  expected = minimise(lambda a: gamma * h @ a + np.sqrt(a @ a), len(h))
  np.testing.assert_allclose(found, expected, atol=1e-5)


def test_one_hot_comes_at_the_lead_that_theory_names():
  for kind, lead in (
    (source_weights.Projected, 2 * 0.2),
    (source_weights.Darn, 1 / 0.5),
  ):
    solve = make(kind).solve
    before, after = (jnp.array([1.0, 1.0 + d, 4.0]) for d in (-0.01, 0.01))
    before = solve(before.at[1].add(lead))
    after = solve(after.at[1].add(lead))
    assert before[1] > 0
    np.testing.assert_allclose(after, [1, 0, 0], atol=1e-6)


def test_weights_are_solved_for_on_a_moving_average():
  weights = make(source_weights.Projected, 2, mu_s=1.0, alpha_decay=0.9)
  state = weights.init_state()
  average = np.zeros(2)
  for losses in ([1.0, 3.0], [0.0, 2.0]):
    alpha, state = weigh(weights, losses, state=state)
    average = 0.9 * average + 0.1 * np.array(losses)
  np.testing.assert_allclose(state['source_losses'], average, rtol=1e-6)
  half = (average[1] - average[0]) / 4  # of two sources, 1/2 ± lead / 4μ_s
  np.testing.assert_allclose(alpha, [0.5 + half, 0.5 - half], rtol=1e-6)


def test_a_floor_keeps_every_source():
  weights = make(source_weights.Floored, alpha_floor=0.3)
  alpha, _ = weigh(weights, params={'beta': jnp.array([99.0, 0, 0])})
  np.testing.assert_allclose(alpha, [0.8, 0.1, 0.1], rtol=1e-6)


def test_held_weights_are_equal_and_do_not_move_beta():
  weights = make(source_weights.Softmax, alpha_hold=5)
  params = weights.init_params(jax.random.key(0))
  np.testing.assert_array_equal(params['beta'], 0)
  params = {'beta': jnp.array([1.0, 2.0, 3.0])}

  def weighted(params, step):
    alpha, _ = weigh(weights, step=step, params=params)
    return alpha @ jnp.array([1.0, 5.0, 7.0]), alpha

  grad_fn = jax.grad(weighted, has_aux=True)
  grads, alpha = grad_fn(params, jnp.asarray(4))
  np.testing.assert_allclose(alpha, 1 / 3, rtol=1e-6)
  np.testing.assert_array_equal(grads['beta'], 0)
  grads, alpha = grad_fn(params, jnp.asarray(5))
  np.testing.assert_allclose(alpha, jax.nn.softmax(params['beta']), rtol=1e-6)
  assert np.all(grads['beta'] != 0)


def test_relative_sparsity_follows_the_level_of_the_losses():
  weights = make(source_weights.Relative, mu_s=0.5)
  found = weights.sparsity_weight(jnp.array([1.0, 2.0, 6.0]))
  np.testing.assert_allclose(found, 0.5 * 3.0)
  gradient = jax.grad(lambda x: weights.sparsity_weight(x))(jnp.ones(3))
  np.testing.assert_array_equal(gradient, 0)
