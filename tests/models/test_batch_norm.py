"""BatchNorm by groups, against NumPy and one group at a time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny
from flax import linen as nn

from moda_jax.models.batch_norm import BatchNorm
from moda_jax.models.networks import Networks
from moda_jax.objectives import METHODS


class NumpyNorm:
  """BatchNorm of one group at a time, as a framework without groups does."""

  def __init__(self, scale, bias, mean, var, epsilon):
    self.scale, self.bias = scale, bias
    self.mean, self.var = mean.copy(), var.copy()
    self.epsilon = epsilon

  def normalise(self, x, mean, var):
    x = (x - mean) / np.sqrt(var + self.epsilon)
    return x * self.scale + self.bias

  def train(self, x):
    axes = tuple(range(x.ndim - 1))
    self.mean = 0.9 * self.mean + 0.1 * x.mean(axes)
    self.var = 0.9 * self.var + 0.1 * x.var(axes, ddof=1)
    return self.normalise(x, x.mean(axes), x.var(axes))

  def evaluate(self, x):
    return self.normalise(x, self.mean, self.var)


def make_norms(channels, epsilon=0.01):
  rng = np.random.default_rng(1)
  scale, bias, mean = rng.normal(size=(3, channels))
  var = rng.uniform(0.5, 2, channels)
  variables = {
    'params': {'scale': scale, 'bias': bias},
    'batch_stats': {'mean': mean, 'var': var},
  }
  return variables, NumpyNorm(scale, bias, mean, var, epsilon)


def test_groups_are_taken_alone_and_averages_take_all_in_order():
  rng = np.random.default_rng(0)
  with jax.enable_x64(True):
    module = BatchNorm(epsilon=0.01)
    variables, twin = make_norms(channels=5)
    shift = np.arange(4).reshape(4, 1, 1, 1, 1)  # groups that differ
    x = rng.normal(size=(4, 3, 2, 6, 5)) * (1 + shift) + 3 * shift
    found, updated = module.apply(variables, x, True, mutable=['batch_stats'])
    expected = np.stack([twin.train(group) for group in x])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    stats = updated['batch_stats']
    np.testing.assert_allclose(stats['mean'], twin.mean, rtol=1e-12)
    np.testing.assert_allclose(stats['var'], twin.var, rtol=1e-12)

    variables |= updated
    y = rng.normal(size=(2, 6, 5))
    found, updated = module.apply(variables, y, False, mutable=['batch_stats'])
    np.testing.assert_allclose(found, twin.evaluate(y), rtol=1e-9)
    jax.tree.map(np.testing.assert_array_equal, updated['batch_stats'], stats)


def test_a_group_may_come_without_its_axis():
  rng = np.random.default_rng(0)
  x = rng.normal(size=(6, 2, 3, 5))
  with jax.enable_x64(True):
    variables, twin = make_norms(channels=5)
    found, updated = BatchNorm(0.01).apply(
      variables, x, True, mutable=['batch_stats']
    )
    np.testing.assert_allclose(found, twin.train(x), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
      updated['batch_stats']['var'], twin.var, rtol=1e-12
    )


def test_a_channel_without_variance_stays_finite():
  x = jnp.full((1, 4, 2, 2, 3), 1234.5)
  variables = {
    'params': {'scale': jnp.ones(3), 'bias': jnp.ones(3)},
    'batch_stats': {'mean': jnp.zeros(3), 'var': jnp.ones(3)},
  }

  def total(x):
    y, _ = BatchNorm(1e-5).apply(variables, x, True, mutable=['batch_stats'])
    return y.sum()

  value, gradient = jax.value_and_grad(total)(x)
  assert np.isfinite(value)
  assert np.isfinite(gradient).all()


class Normed(nn.Module):
  """BatchNorm alone, or with the mean over space for logits."""

  is_head: bool = False

  @nn.compact
  def __call__(self, x, *, train=False):
    x = BatchNorm(0.01)(x, train)
    return x.mean(axis=(-3, -2)) if self.is_head else x


@pytest.mark.slow
def test_a_method_shows_its_domains_and_views_in_the_order_told():
  """Sources, weak, strong; the discriminator sees no strong view."""
  channels = 2  # the classes, and the discriminator's two
  rng = np.random.default_rng(0)
  x = rng.normal(size=(4, 3, 2, 2, channels))
  x = x * np.arange(1, 5).reshape(4, 1, 1, 1, 1) + rng.normal(size=channels)
  batch = {
    'source': {'weak': x[:2], 'label': np.zeros((2, 3), int)},
    'target': {'weak': x[2], 'strong': x[3]},
  }
  networks = Networks(Normed(), Normed(True), Normed(True))
  method = METHODS['moda_fm'](
    networks, ('a', 'b'), tiny.make_options('moda_fm')
  )
  with jax.enable_x64(True):
    made = {part: make_norms(channels) for part in method.parts}
    params, state = {'beta': jnp.zeros(2)}, {}
    for part, (variables, _) in made.items():
      params[part] = {'BatchNorm_0': variables['params']}
      state[part] = {'batch_stats': {'BatchNorm_0': variables['batch_stats']}}
    _, (_, updated) = method.loss_and_aux(
      params, state, batch, jax.random.key(0), jnp.zeros(())
    )
  twins = {part: twin for part, (_, twin) in made.items()}
  z = [twins['extractor'].train(group) for group in x]
  for group in z:
    twins['classifier'].train(group)
  for group in z[:3]:
    twins['discriminator'].train(group)
  for part, twin in twins.items():
    found = updated[part]['batch_stats']['BatchNorm_0']
    np.testing.assert_allclose(found['mean'], twin.mean, rtol=1e-9)
    np.testing.assert_allclose(found['var'], twin.var, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize('name', ['m3sda', 'moe'])
def test_sums_of_bfloat16_features_are_taken_in_float32(name):
  class Rough(tiny.Layers):
    @nn.compact
    def __call__(self, x, *, train=False):
      return super().__call__(x, train=train).astype(jnp.bfloat16)

  batch = tiny.make_batch(size=400)
  fine = tiny.make_method(name)
  params, state = tiny.init(fine, batch)
  networks = tiny.create_networks()._replace(extractor=Rough((4, 6)))
  rough = METHODS[name](networks, fine.sources, fine.options)
  outcomes = [
    method.loss_and_aux(params, state, batch, jax.random.key(0), jnp.zeros(()))
    for method in (fine, rough)
  ]
  (exact, _), (found, (metrics, new_state)) = outcomes
  kept = jax.tree.leaves((found, metrics, new_state))
  assert {leaf.dtype for leaf in kept} == {jnp.dtype('float32')}
  np.testing.assert_allclose(found, exact, jnp.finfo(jnp.bfloat16).eps)
