import closeness
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny

from moda_jax.models import reviews
from moda_jax.models.networks import Dropout
from moda_jax.objectives import METHODS
from moda_jax.objectives.forward import Forward
from moda_jax.training import devices as devices_lib


def shapes(module, x):
  variables = jax.eval_shape(module.init, jax.random.key(0), x)
  return [layer['kernel'].shape for layer in variables['params'].values()]


def test_the_paper_s_layers():
  networks = reviews.create_networks(2)
  x, z = jnp.zeros((2, 5000)), jnp.zeros((2, 100))
  assert shapes(networks.extractor, x) == [
    (5000, 1000),
    (1000, 500),
    (500, 100),
  ]
  assert shapes(networks.classifier, z) == [(100, 2)]
  assert shapes(networks.discriminator, z) == [(100, 2)]


def make_dropout(rate, size):
  keys = jax.random.split(jax.random.key(0), (1, size))
  return Dropout(jnp.asarray(rate), keys)


def test_dropout_meets_the_last_group_alone_and_keeps_the_mean():
  x = jnp.ones((3, 40, 500))
  made = make_dropout(0.3, 40)(x, layer=0)
  np.testing.assert_array_equal(made[:2], x[:2])
  dropped = np.asarray(made[2])
  np.testing.assert_allclose(np.unique(dropped), [0, 1 / 0.7], rtol=1e-6)
  # 20,000 draws: the share of zeros is within 5 standard deviations.
  assert abs((dropped == 0).mean() - 0.3) < 5 * (0.3 * 0.7 / 20_000) ** 0.5


def test_every_layer_and_example_has_a_draw_of_its_own():
  x, dropout = jnp.ones((1, 2, 500)), make_dropout(0.5, 2)
  first, second = dropout(x, 0), dropout(x, 1)
  assert (first != second).any()
  assert (first[0, 0] != first[0, 1]).any()


def test_dropout_stands_before_every_layer_and_at_the_end():
  """Against the layers written out."""
  module = reviews.Extractor((10, 5, 1))
  x = jax.random.normal(jax.random.key(1), (2, 4, 30))
  variables = module.init(jax.random.key(0), x)
  dropout = make_dropout(0.4, 4)
  expected = x
  for i in range(3):
    layer = variables['params'][f'Dense_{i}']
    expected = dropout(expected, i) @ layer['kernel'] + layer['bias']
    expected = np.maximum(expected, 0)
  found = module.apply(variables, x, dropout=dropout)
  closeness.assert_close(found, dropout(expected, 3), depth=3, dtype=np.float32)


@pytest.mark.slow
@pytest.mark.parametrize('name', ['moda_fm', 'moda'])
def test_a_method_drops_of_its_strong_view_alone(name):
  networks = reviews.create_networks(tiny.CLASSES, width=0.05)
  networks = networks._replace(dropout_range=(0.3, 0.3))
  options = tiny.make_options(name)
  method = METHODS[name](networks, ('a', 'b', 'c'), options)
  batch = tiny.make_batch()
  batch['target']['strong'] = batch['target']['weak']
  params, state = tiny.init(method, batch)
  z = extract(method, params, state, batch, 3)

  def clean(x):
    return networks.extractor.apply({'params': params['extractor']}, x)

  weak = clean(batch['target']['weak'])
  source = clean(batch['source']['weak'])
  closeness.assert_close(z['source'], source, depth=3, dtype=np.float32)
  closeness.assert_close(z['weak'], weak, depth=3, dtype=np.float32)
  assert ('strong' in z) == (name == 'moda_fm')
  if 'strong' in z:  # five units that rectify, 70 % of which are kept
    assert not np.allclose(z['strong'], weak)
    again = extract(method, params, state, batch, 4)
    assert not np.allclose(z['strong'], again['strong'])


def extract(method, params, state, batch, seed):
  return Forward(method, params, state, batch, jax.random.key(seed), 0).features


def make_method(devices=1, **rates):
  axis_name = devices_lib.axis_name(devices)
  options = tiny.make_options('moda_fm')
  networks = reviews.ReviewsOptions(width=0.05, **rates).create(tiny.CLASSES)
  return METHODS['moda_fm'](networks, ('a', 'b', 'c'), options, axis_name)


def test_the_same_is_dropped_on_any_number_of_devices():
  with jax.enable_x64(True):
    batch = tiny.make_batch(size=16)
    batch['target'].pop('label')
    params, state = tiny.init(make_method(), batch)
    losses = []
    for devices in (1, 8):
      method = make_method(devices)
      loss = devices_lib.compile_step(
        lambda p, b, m=method: m.loss_and_aux(
          p, state, b, jax.random.key(3), 0
        )[0],
        devices,
      )
      split = batch
      if devices > 1:
        split = devices_lib.split_over_devices(batch, devices)
      losses.append(loss(params, split))
    np.testing.assert_allclose(*losses, rtol=1e-12)


@pytest.mark.parametrize(('low', 'high'), [(0.2, 0.8), (0.5, 0.5)])
def test_one_rate_a_step_is_drawn_uniformly(low, high):
  method = make_method(dropout_min=low, dropout_max=high)
  keys = jax.random.split(jax.random.key(0), 2000)
  rates = jax.vmap(
    lambda key: (
      Forward(method, {}, {}, {}, key, 0)
      ._draw_dropout(1, 1, method.networks.dropout_range)
      .rate
    )
  )(keys)
  assert rates.min() >= low
  assert rates.max() <= high
  # Mean and spread of the uniform distribution, within 5 deviations.
  spread = (high - low) / 12**0.5
  assert abs(rates.mean() - (low + high) / 2) <= 5 * spread / 2000**0.5 + 1e-6
  assert abs(rates.std() - spread) < 0.05 * spread + 1e-6
