"""One device and eight give the same training on mini digits, to rounding."""

import functools

import jax
import numpy as np
import pytest
import tensorflow as tf
import tiny

from configs import mini
from moda_jax.data import batches
from moda_jax.data.load import load_domains
from moda_jax.models import NETWORKS
from moda_jax.objectives import METHODS, Method
from moda_jax.training import step as step_lib
from moda_jax.training.optimizers import create_optimizer

STEPS = 3
WIDTH = 0.03
# Dense layers compile soonest, and what methods sum over devices does not
# depend on the network: convolutions need not come with each.
CASES = [*((name, 'tiny images') for name in METHODS), ('moda_fm', 'digits')]


@pytest.fixture(scope='module')
def config(mini_data_dir):
  config = mini.get_config('mnistm,batch_size=16,samples=64,tau=0.1')
  config.update(tiny.make_config(tau=0.1, width=WIDTH))
  config.data_dir = str(mini_data_dir)
  return config


@pytest.fixture(scope='module')
def all_batches(config):
  """Batches with every view and label that any method may declare."""

  class Everything(Method):
    views = ('weak', 'strong')
    reads_target_labels = True

  batch_fn = batches.make_batch_fn(load_domains(config), Everything, config)
  made = [batch_fn(tf.constant(step, tf.int64)) for step in range(STEPS)]
  return [jax.tree.map(lambda x: x.numpy(), batch) for batch in made]


@pytest.mark.parametrize(('name', 'network'), CASES)
def test_eight_devices_equal_one_in_float64(name, network, config, all_batches):
  with jax.enable_x64(True):
    one, eight = (run(name, network, n, config, all_batches) for n in (1, 8))
    jax.tree.map(
      functools.partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-12),
      one,
      eight,
    )


def test_eight_devices_are_near_one_in_float32(
  config, all_batches, record_property
):
  """Rounding differs and AdaDelta magnifies it: told rather than bounded."""
  (one, _), (eight, _) = (
    run('moda_fm', 'digits', n, config, all_batches) for n in (1, 8)
  )
  differences = [
    max(abs(float(a[key] / b[key]) - 1) for key in ('loss', 'gradient_norm'))
    for a, b in zip(one, eight, strict=True)
  ]
  record_property('relative differences by step', differences)
  print(f'relative differences by step {differences}')
  assert max(differences) < 0.1


def run(name, network, devices, config, all_batches):
  """Trains narrow networks; returns metrics of each step and parameters."""
  axis_name = step_lib.DEVICES if devices > 1 else None
  networks = NETWORKS[network](10, width=WIDTH)
  method = METHODS[name](networks, config.sources, config, axis_name)
  train_state, tx = step_lib.create_train_state(
    METHODS[name](networks, config.sources, config),
    lambda params: create_optimizer(config, params),
    jax.random.key(0),
    all_batches[0]['target']['weak'][:1],
  )
  if jax.config.jax_enable_x64:
    train_state = jax.tree.map(tiny.in_float64, train_state)
  train_step = step_lib.compile_step(
    step_lib.make_train_step(method, tx, jax.random.key(0)),
    devices,
    donate_state=True,
  )
  history = []
  for batch in all_batches:
    batch = declared(METHODS[name], batch)
    if devices > 1:
      batch = batches.split_over_devices(batch, devices)
    train_state, metrics = train_step(train_state, batch)
    history.append(jax.device_get(metrics))
  return history, jax.device_get(train_state.params)


def declared(method, batch):
  names = {*method.views, *(['label'] if method.reads_target_labels else [])}
  target = {k: v for k, v in batch['target'].items() if k in names}
  source = batch['source'] if method.reads_sources else {}
  return {'source': source, 'target': target}
