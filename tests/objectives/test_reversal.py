import closeness
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moda_jax.objectives.reversal import reverse_gradient


@pytest.fixture(autouse=True)
def float64():
  with jax.enable_x64(True):
    yield


def test_forward_is_the_identity_on_any_pytree():
  tree = {'a': jnp.arange(3.0), 'b': (jnp.ones((2, 2)), jnp.float32(4))}
  same = reverse_gradient(tree)
  assert jax.tree.structure(same) == jax.tree.structure(tree)
  jax.tree.map(np.testing.assert_array_equal, same, tree)


def test_gradient_is_that_of_finite_differences_turned_around():
  def loss(x):
    return jnp.sum(jnp.sin(x) * x**2)

  x, step = np.array([0.3, -1.2, 2.0]), 1e-6
  slopes = [
    (loss(x + step * e) - loss(x - step * e)) / (2 * step) for e in np.eye(3)
  ]
  grad = jax.grad(lambda x: loss(reverse_gradient(x, 0.7)))(x)
  atol = closeness.slope_tolerance(step, loss(x))
  np.testing.assert_allclose(grad, -0.7 * np.array(slopes), 1e-9, atol)


def test_min_max_game_in_one_backward_pass():
  """The player before the reversal ascends where the one after descends."""

  def payoff(g, d):
    return jnp.sum((g @ d) ** 2) + jnp.sum(jnp.cos(g))

  def one_pass(g, d):
    return payoff(reverse_gradient(g), d)

  g, d, step = np.arange(6.0).reshape(2, 3) / 5, np.array([0.4, 1, -2]), 1e-6
  grad_g, grad_d = jax.grad(one_pass, (0, 1))(g, d)
  basis_g = np.eye(6).reshape(6, 2, 3)
  slope_g = [
    (payoff(g + step * e, d) - payoff(g - step * e, d)) / (2 * step)
    for e in basis_g
  ]
  slope_d = [
    (payoff(g, d + step * e) - payoff(g, d - step * e)) / (2 * step)
    for e in np.eye(3)
  ]
  slope_g = np.reshape(slope_g, (2, 3))
  atol = closeness.slope_tolerance(step, payoff(g, d))
  np.testing.assert_allclose(grad_g, -slope_g, 1e-9, atol)
  np.testing.assert_allclose(grad_d, slope_d, 1e-9, atol)


def test_strength_may_be_traced_and_gets_no_gradient():
  @jax.jit
  def grads(x, strength):
    return jax.grad(lambda x, s: jnp.sum(reverse_gradient(x, s) ** 2), (0, 1))(
      x, strength
    )

  grad_x, grad_strength = grads(jnp.array([1.0, 2.0]), jnp.array(0.25))
  np.testing.assert_allclose(grad_x, [-0.5, -1.0])
  assert grad_strength == 0


def test_gradient_keeps_the_dtype_of_each_leaf():
  def loss(x):
    return jnp.sum(reverse_gradient(x, jnp.float32(2)).astype(float))

  assert jax.grad(loss)(jnp.ones(3, jnp.bfloat16)).dtype == jnp.bfloat16


def test_works_under_vmap():
  grad = jax.grad(lambda x: jnp.sum(reverse_gradient(x, 3.0)))
  np.testing.assert_allclose(
    jax.vmap(grad)(jnp.ones((4, 2))), -3 * np.ones((4, 2))
  )


def test_integers_are_refused():
  with pytest.raises(TypeError, match='int32'):
    reverse_gradient({'a': jnp.ones(2), 'b': jnp.ones(2, jnp.int32)})
