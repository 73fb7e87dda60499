"""MODA, FM and MODA-FM: who ascends, who descends, and on what."""

import closeness
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest
import tiny

STEP = 1e-6


@pytest.fixture(autouse=True)
def float64():
  with jax.enable_x64(True):
    yield


def slopes(function, tree):
  """Returns central differences of a scalar function of a pytree."""
  flat, unravel = jax.flatten_util.ravel_pytree(tree)
  at = jax.jit(lambda x: function(unravel(x)))
  values = [
    (at(flat + STEP * e) - at(flat - STEP * e)) / (2 * STEP)
    for e in np.eye(len(flat))
  ]
  return np.array(values)


def game_value(method, params, batch):
  """Returns the paper's objective, written out in full without reversal."""
  config, sources = method.options, batch['source']
  run = {part: getattr(method.networks, part) for part in method.parts}

  def apply(part, x):
    return jax.nn.log_softmax(run[part].apply({'params': params[part]}, x))

  def extract(x):
    return run['extractor'].apply({'params': params['extractor']}, x)

  alpha = jnp.exp(params['beta']) / jnp.exp(params['beta']).sum()
  target, strong = (
    extract(batch['target']['weak']),
    extract(batch['target']['strong']),
  )
  value = -config.mu_d * -apply('discriminator', target)[:, 1].mean()
  for j, weight in enumerate(alpha):
    z = extract(sources['weak'][j])
    picked = apply('classifier', z)[np.arange(len(z)), sources['label'][j]]
    value += weight * -picked.mean()
    value -= config.mu_d * weight * -apply('discriminator', z)[:, 0].mean()
  value += config.mu_s * jnp.sum(alpha**2)
  if method.batch_spec.has_strong_view:
    weak = apply('classifier', target)
    confident = jnp.exp(weak.max(axis=1)) > config.tau
    pseudo = weak.argmax(axis=1)
    picked = apply('classifier', strong)[np.arange(len(strong)), pseudo]
    value += config.mu_c * -(confident * picked).mean()
  return value


@pytest.mark.parametrize('name', ['moda', 'moda_fm'])
def test_one_pass_gives_the_gradients_of_the_min_max(name):
  method, batch = tiny.make_method(name), tiny.make_batch()
  params, state = tiny.init(method, batch)
  _, _, grads = tiny.loss_and_grads(method, params, state, batch)
  for part in params:
    expected = slopes(
      lambda value, part=part: game_value(
        method, params | {part: value}, batch
      ),
      params[part],
    )
    # The discriminator maximises the objective, everything else minimises.
    sign = -1 if part == 'discriminator' else 1
    found = jax.flatten_util.ravel_pytree(grads[part])[0]
    atol = closeness.slope_tolerance(STEP, game_value(method, params, batch))
    np.testing.assert_allclose(found, sign * expected, 1e-9, atol, err_msg=part)


def test_discriminator_descends_extractor_and_beta_ascend():
  """A small step along each gradient moves the discriminator loss its way."""
  method, batch = tiny.make_method('moda', mu_s=0.0), tiny.make_batch()
  params, state = tiny.init(method, batch)

  def loss(params):
    return method.loss_and_aux(params, state, batch, jax.random.key(0), 0)[0]

  def discriminator_loss(params):
    _, (metrics, _) = method.loss_and_aux(
      params, state, batch, jax.random.key(0), 0
    )
    return metrics['discriminator']

  # Only the discriminator loss acts: the class losses' own part is taken off.
  no_game = tiny.make_method('moda', mu_s=0.0, mu_d=0.0)
  alone = jax.tree.map(
    jnp.subtract,
    jax.grad(loss)(params),
    jax.grad(
      lambda p: no_game.loss_and_aux(p, state, batch, jax.random.key(0), 0)[0]
    )(params),
  )
  before = discriminator_loss(params)
  for part, ascends in {
    'discriminator': False,
    'extractor': True,
    'beta': True,
  }.items():
    moved = jax.tree.map(lambda p, g: p - 1e-3 * g, params[part], alone[part])
    after = discriminator_loss(params | {part: moved})
    assert (after > before) == ascends, part


def test_alpha_is_on_the_simplex_whatever_beta():
  method, batch = tiny.make_method('moda'), tiny.make_batch()
  params, state = tiny.init(method, batch)
  for beta in ([0.0, 0, 0], [50.0, -50, 3], [-900.0, 900, 0]):
    params['beta'] = jnp.array(beta)
    _, metrics, _ = tiny.loss_and_grads(method, params, state, batch)
    alpha = [metrics[f'alpha/{source}'] for source in 'abc']
    assert min(alpha) >= 0
    np.testing.assert_allclose(sum(alpha), 1)


def test_beta_starts_uniform_in_the_unit_interval():
  method, batch = tiny.make_method('moda'), tiny.make_batch()
  init = jax.jit(lambda key: method.init(key, batch['target']['weak'])[0])
  draws = np.concatenate([init(jax.random.key(i))['beta'] for i in range(100)])
  assert 0 <= draws.min() < 0.05
  assert 0.95 < draws.max() <= 1
  assert abs(draws.mean() - 0.5) < 0.05


def test_parameter_trees():
  batch = tiny.make_batch()
  trees = {
    name: set(tiny.init(tiny.make_method(name), batch)[0])
    for name in ('source_only', 'fm', 'moda', 'moda_fm')
  }
  networks = {'extractor', 'classifier', 'discriminator'}
  assert trees['moda'] == trees['moda_fm'] == networks | {'beta'}
  assert trees['fm'] == trees['source_only'] == networks - {'discriminator'}


def test_moda_fm_without_game_at_equal_weights_is_fm():
  batch = tiny.make_batch()
  full = tiny.make_method('moda_fm', mu_d=0.0)
  plain = tiny.make_method('fm')
  params, state = tiny.init(full, batch)
  params['beta'] = jnp.zeros(3)
  loss, _, grads = tiny.loss_and_grads(full, params, state, batch)
  part = {k: params[k] for k in ('extractor', 'classifier')}
  plain_loss, _, plain_grads = tiny.loss_and_grads(plain, part, state, batch)
  np.testing.assert_allclose(loss, plain_loss + full.options.mu_s / 3)
  grads = {name: grads[name] for name in part}
  closeness.assert_close(grads, plain_grads, depth=2 * tiny.LAYERS)


def test_mu_c_zero_makes_moda_fm_moda():
  batch = tiny.make_batch()
  full, plain = tiny.make_method('moda_fm', mu_c=0.0), tiny.make_method('moda')
  params, state = tiny.init(plain, batch)
  loss, _, grads = tiny.loss_and_grads(full, params, state, batch)
  plain_loss, _, plain_grads = tiny.loss_and_grads(plain, params, state, batch)
  np.testing.assert_allclose(loss, plain_loss)
  closeness.assert_close(grads, plain_grads, depth=2 * tiny.LAYERS)
