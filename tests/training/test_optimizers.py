import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import tiny

from moda_jax.errors import UserError
from moda_jax.training.optimizers import create_optimizer, rate_multipliers

PARAMS = {
  'net': {'kernel': jnp.ones(3), 'bias': jnp.ones(2)},
  'beta': jnp.ones(1),
}


def update(**values):
  tx = create_optimizer(tiny.make_run_config(**values), PARAMS)
  grads = jax.tree.map(lambda x: 0.1 * x, PARAMS)
  return tx.update(grads, tx.init(PARAMS), PARAMS)[0]


def test_adadelta_against_its_recurrence():
  tx = create_optimizer(tiny.make_run_config(learning_rate=0.3), PARAMS)
  state, squares, deltas = tx.init(PARAMS), 0.0, 0.0
  for gradient in (0.5, -2.0, 0.01):
    grads = jax.tree.map(lambda x: jnp.full_like(x, gradient), PARAMS)  # noqa: B023
    updates, state = tx.update(grads, state, PARAMS)
    squares = 0.9 * squares + 0.1 * gradient**2
    delta = gradient * np.sqrt(deltas + 1e-6) / np.sqrt(squares + 1e-6)
    deltas = 0.9 * deltas + 0.1 * delta**2
    np.testing.assert_allclose(updates['beta'], -0.3 * delta, rtol=1e-5)


def test_adadelta_is_that_of_optax():
  rng = np.random.default_rng(0)
  ours = create_optimizer(tiny.make_run_config(learning_rate=0.3), PARAMS)
  optax_s = optax.adadelta(0.3, rho=0.9, eps=1e-6)
  states = [tx.init(PARAMS) for tx in (ours, optax_s)]
  for scale in (1e-6, 1.0, 1e3, 0.0):
    grads = jax.tree.map(lambda x: scale * rng.normal(size=x.shape), PARAMS)  # noqa: B023
    found, states[0] = ours.update(grads, states[0], PARAMS)
    expected, states[1] = optax_s.update(grads, states[1], PARAMS)
    jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), found, expected
    )


def test_the_first_pattern_found_gives_the_rate():
  plain = update()
  grouped = update(
    rate_multipliers=(('bias$', 0.0), ('^net/', 0.1), ('.*', 2.0))
  )
  np.testing.assert_allclose(grouped['beta'], 2 * plain['beta'])
  np.testing.assert_allclose(
    grouped['net']['kernel'], 0.1 * plain['net']['kernel']
  )
  np.testing.assert_array_equal(grouped['net']['bias'], 0)


@pytest.mark.parametrize(
  'patterns',
  [
    3,
    'kernel',
    (('kernel', 1, 2),),
    ((3, 1.0),),
    (('.*', 'x'),),
    (('.*', float('nan')),),
  ],
)
def test_what_is_no_pair_of_pattern_and_rate_is_refused(patterns):
  with pytest.raises(UserError, match='must be pairs of a pattern and'):
    rate_multipliers(patterns, {'beta': 0.0})


def test_a_pattern_that_cannot_be_read_is_refused():
  with pytest.raises(UserError, match=r"'\(' is no regular expression"):
    update(rate_multipliers=(('(', 1.0), ('.*', 1.0)))


def test_an_uncovered_parameter_is_refused_by_name():
  with pytest.raises(UserError, match='net/bias'):
    update(rate_multipliers=(('kernel', 1.0), ('beta', 1.0)))
