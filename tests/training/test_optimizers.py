import closeness
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from moda_jax.errors import UserError
from moda_jax.training.optimizers import (
  AdaDelta,
  Adam,
  AdamW,
  Sgd,
  create_optimizer,
  rate_multipliers,
)

PARAMS = {
  'net': {'kernel': jnp.ones(3), 'bias': jnp.ones(2)},
  'beta': jnp.ones(1),
}


def update(**values):
  tx = create_optimizer(AdaDelta(learning_rate=1.0, **values), PARAMS, 10)
  grads = jax.tree.map(lambda x: 0.1 * x, PARAMS)
  return tx.update(grads, tx.init(PARAMS), PARAMS)[0]


def test_adadelta_against_its_recurrence():
  tx = create_optimizer(AdaDelta(learning_rate=0.3), PARAMS, 10)
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
  ours = create_optimizer(AdaDelta(learning_rate=0.3), PARAMS, 10)
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
  rtol = closeness.tolerance(np.float32, 1)
  np.testing.assert_allclose(grouped['beta'], 2 * plain['beta'], rtol)
  np.testing.assert_allclose(
    grouped['net']['kernel'], 0.1 * plain['net']['kernel'], rtol
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
  with pytest.raises(UserError, match=r"'\(' is not a regular"):
    update(rate_multipliers=(('(', 1.0), ('.*', 1.0)))


def test_an_uncovered_parameter_is_refused_by_name():
  with pytest.raises(UserError, match='net/bias'):
    update(rate_multipliers=(('kernel', 1.0), ('beta', 1.0)))


def run_steps(tx, steps=4):
  """Returns the parameters after some steps along random gradients."""
  rng = np.random.default_rng(0)
  params, state = PARAMS, tx.init(PARAMS)
  for _ in range(steps):
    grads = jax.tree.map(
      lambda x: jnp.asarray(rng.normal(size=x.shape), x.dtype), PARAMS
    )
    updates, state = tx.update(grads, state, params)
    params = optax.apply_updates(params, updates)
  return params


NOT_BETA = {'net': {'kernel': True, 'bias': True}, 'beta': False}
CASES = {
  'sgd': (Sgd(learning_rate=0.1), optax.sgd(0.1, momentum=0.9)),
  'plain sgd': (Sgd(learning_rate=0.1, momentum=0.0), optax.sgd(0.1)),
  'nesterov': (
    Sgd(learning_rate=0.1, nesterov=True),
    optax.sgd(0.1, momentum=0.9, nesterov=True),
  ),
  'adam': (Adam(learning_rate=0.1, b1=0.8), optax.adam(0.1, b1=0.8)),
  'adamw': (
    AdamW(learning_rate=0.1, weight_decay=0.3),
    optax.adamw(0.1, weight_decay=0.3, mask=NOT_BETA),
  ),
  'added decay': (
    Sgd(learning_rate=0.1, weight_decay=0.3),
    optax.chain(
      optax.add_decayed_weights(0.3, NOT_BETA), optax.sgd(0.1, momentum=0.9)
    ),
  ),
  'clipping': (
    Sgd(learning_rate=0.1, clip_norm=0.5),
    optax.chain(optax.clip_by_global_norm(0.5), optax.sgd(0.1, momentum=0.9)),
  ),
  'cosine': (
    Adam(learning_rate=0.1, schedule='cosine'),
    optax.adam(optax.cosine_decay_schedule(0.1, 10)),
  ),
  'warm-up': (
    Adam(learning_rate=0.1, warmup_steps=3),
    optax.adam(optax.linear_schedule(0.0, 0.1, 3)),
  ),
  'warm-up and cosine': (
    Adam(learning_rate=0.1, warmup_steps=2, schedule='cosine'),
    optax.adam(optax.warmup_cosine_decay_schedule(0.0, 0.1, 2, 10)),
  ),
  'dann': (
    Sgd(learning_rate=0.1, schedule='dann'),
    optax.sgd(lambda step: 0.1 / (1 + 10 * step / 10) ** 0.75, momentum=0.9),
  ),
}


@pytest.mark.parametrize('name', CASES)
def test_an_optimizer_is_that_of_optax(name):
  options, expected = CASES[name]
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5),
    run_steps(create_optimizer(options, PARAMS, 10)),
    run_steps(expected),
  )


def test_beta_has_a_rate_of_its_own():
  plain, slow = update(), update(beta_rate=0.1)
  np.testing.assert_allclose(slow['beta'], 0.1 * plain['beta'], rtol=1e-6)
  np.testing.assert_array_equal(slow['net']['bias'], plain['net']['bias'])
