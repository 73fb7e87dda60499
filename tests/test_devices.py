"""One device and eight give the same training, to rounding."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny

from moda_jax import step as step_lib
from moda_jax.data import batches
from moda_jax.objectives import METHODS
from moda_jax.optimizer import create_optimizer


@pytest.mark.parametrize('name', METHODS)
def test_eight_devices_equal_one_in_float64(name):
  with jax.enable_x64(True):
    one, eight = (run(name, devices) for devices in (1, 8))
    jax.tree.map(
      functools.partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-12),
      one,
      eight,
    )


def run(name, devices, steps=3):
  """Trains tiny networks; returns the metrics of each step and the params."""
  axis_name = step_lib.DEVICES if devices > 1 else None
  method = tiny.make_method(name, axis_name=axis_name)
  config = tiny.make_run_config()
  params, state = tiny.init(method, tiny.make_batch())
  tx = create_optimizer(config, params)
  train_state = step_lib.TrainState(
    jnp.zeros((), jnp.int32), params, tx.init(params), state
  )
  train_step = step_lib.compile_step(
    step_lib.make_train_step(method, tx, seed=0), devices, donate_state=True
  )
  history = []
  for i in range(steps):
    batch = declared(METHODS[name], tiny.make_batch(size=16, seed=i))
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
