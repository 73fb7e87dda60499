"""Source weights against brute force, SciPy and hand-made cases."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from moda_jax.errors import UserError
from moda_jax.objectives.weights import WEIGHTS, find_weights
from moda_jax.objectives.weights.weighted import Weighted

ADAPTIVE = [name for name, w in WEIGHTS.items() if issubclass(w, Weighted)]


@pytest.fixture(autouse=True)
def float64():
  with jax.enable_x64(True):
    yield


def make(name, count=3, **values):
  kind = find_weights(name)
  options = kind.Options(**values)
  return kind(types.SimpleNamespace(options=options, sources=range(count)))


def make_forward(step=0, params=None, state=None):
  """Returns what weights read of a forward pass."""
  return types.SimpleNamespace(
    params=params,
    state=state or {},
    step=step,
    log=lambda name, value: None,
    log_by_source=lambda name, values: None,
  )


def weigh(weights, losses=(1.0, 1.0, 1.0), **values):
  """Returns α and the next state, as a forward pass gives and keeps them."""
  forward = make_forward(**values)
  return weights.alpha(forward, jnp.asarray(losses)), forward.state


def init(weights):
  """Returns the first parameters and state."""
  return weights.init(jax.random.key(0), {}, {}, None)


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
  weights = make('projected', len(h), mu_s=mu_s)
  found = weights.solve(jnp.asarray(h))
  expected = minimise(lambda a: h @ a + mu_s * a @ a, len(h))
  np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize('h', CASES)
@pytest.mark.parametrize('gamma', [0.1, 0.5, 3.0])
def test_darn_s_weights_minimise_its_objective(h, gamma):
  weights = make('darn', len(h), darn_gamma=gamma)
  found = weights.solve(jnp.asarray(h))
  expected = minimise(lambda a: gamma * h @ a + np.sqrt(a @ a), len(h))
  np.testing.assert_allclose(found, expected, atol=1e-5)


def test_one_hot_comes_at_the_lead_that_theory_names():
  for kind, lead in (
    ('projected', 2 * 0.2),
    ('darn', 1 / 0.5),
  ):
    solve = make(kind).solve
    before, after = (jnp.array([1.0, 1.0 + d, 4.0]) for d in (-0.01, 0.01))
    before = solve(before.at[1].add(lead))
    after = solve(after.at[1].add(lead))
    assert before[1] > 0
    np.testing.assert_allclose(after, [1, 0, 0], atol=1e-6)


def test_weights_are_solved_for_on_a_moving_average():
  weights = make('projected', 2, mu_s=1.0, alpha_decay=0.9)
  _, state = init(weights)
  average = np.zeros(2)
  for losses in ([1.0, 3.0], [0.0, 2.0]):
    alpha, state = weigh(weights, losses, state=state)
    average = 0.9 * average + 0.1 * np.array(losses)
  np.testing.assert_allclose(state['source_losses'], average, rtol=1e-6)
  half = (average[1] - average[0]) / 4  # of two sources, 1/2 ± lead / 4μ_s
  np.testing.assert_allclose(alpha, [0.5 + half, 0.5 - half], rtol=1e-6)


def test_a_floor_keeps_every_source():
  weights = make('floored', alpha_floor=0.3)
  alpha, _ = weigh(weights, params={'beta': jnp.array([99.0, 0, 0])})
  np.testing.assert_allclose(alpha, [0.8, 0.1, 0.1], rtol=1e-6)


def test_held_weights_are_equal_and_do_not_move_beta():
  weights = make('softmax', alpha_hold=5)
  params, _ = init(weights)
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
  weights = make('relative', mu_s=0.5)
  found = weights.sparsity_weight(jnp.array([1.0, 2.0, 6.0]))
  np.testing.assert_allclose(found, 0.5 * 3.0)
  gradient = jax.grad(lambda x: weights.sparsity_weight(x))(jnp.ones(3))
  np.testing.assert_array_equal(gradient, 0)


def smooth_max(losses, gamma):
  return np.log(np.sum(np.exp(gamma * np.asarray(losses)))) / gamma


@pytest.mark.parametrize('name', ['smooth_max', 'hard_max'])
def test_maxima_have_the_gradients_of_their_weights(name):
  """Held for no step and not floored, α · losses has the same gradient."""
  losses, game = jnp.array([0.3, 0.9, 0.5]), jnp.array([0.2, 0.1, 0.4])
  weights = make(name)
  loss, alpha = weights.combine(make_forward(), losses, game)
  together = np.asarray(losses + game)
  expected = {'smooth_max': smooth_max(together, 10), 'hard_max': 1.0}
  np.testing.assert_allclose(loss, expected[name])
  slope = jax.grad(lambda x: weights.combine(make_forward(), x, game)[0])
  np.testing.assert_allclose(slope(losses), alpha, rtol=1e-12)
  floored = make(f'{name}+floored', alpha_floor=0.0)
  slope = jax.grad(lambda x: floored.combine(make_forward(), x, game)[0])
  np.testing.assert_allclose(slope(losses), alpha, rtol=1e-12)


@pytest.mark.parametrize('name', ADAPTIVE)
def test_any_weights_can_be_held_and_floored(name):
  """Before `alpha_hold` they are equal, then (1 − ε) of their own + ε/M."""
  losses = jnp.array([0.3, 0.9, 0.5])
  plain, other = make(name), make(f'{name}+floored', alpha_floor=0.6)
  params, state = init(plain)
  alpha, _ = weigh(plain, losses, params=params, state=state)
  floored, _ = weigh(other, losses, params=params, state=state)
  np.testing.assert_allclose(floored, 0.4 * alpha + 0.2, rtol=1e-12)
  held = make(f'{name}+floored', alpha_hold=3)
  alpha, _ = weigh(held, losses, params=params, state=state, step=2)
  np.testing.assert_allclose(alpha, 1 / 3, rtol=1e-12)


def test_maxima_can_follow_a_moving_average():
  weights = make('smooth_max+averaged', 2, alpha_decay=0.5, gamma=2.0)
  _, state = init(weights)
  zero = jnp.zeros(2)
  for losses, average in (([1.0, 3.0], [0.5, 1.5]), ([1.0, 0.0], [0.75, 0.75])):
    forward = make_forward(state=state)
    loss, alpha = weights.combine(forward, jnp.array(losses), zero)
    state = forward.state
    expected = np.exp(2 * np.array(average))
    np.testing.assert_allclose(alpha, expected / expected.sum(), rtol=1e-12)
    np.testing.assert_allclose(loss, alpha @ np.array(losses), rtol=1e-12)


@pytest.mark.parametrize(
  ('text', 'reason'),
  [
    ('soft', 'is unknown; allowed are uniform'),
    ('softmax+mcc', 'with . after one of them floored, averaged'),
    ('uniform+floored', "'uniform' has equal weights"),
    ('projected+averaged', "'projected' is 'averaged' already"),
    ('floored+floored', "'softmax' is 'floored' already"),
    ('softmax+averaged', 'reads no losses'),
  ],
)
def test_weights_that_cannot_be_are_refused(text, reason):
  with pytest.raises(UserError, match=reason):
    find_weights(text)
