"""One device and eight give the same training on mini digits, to rounding."""

import functools
import os
import subprocess
import sys

import jax
import numpy as np
import pytest
import tensorflow as tf
import tiny

from configs import mini
from moda_jax.data import batches
from moda_jax.data.load import load_domains
from moda_jax.data.spec import BatchSpec
from moda_jax.errors import UserError
from moda_jax.models import NETWORKS
from moda_jax.objectives import METHODS
from moda_jax.objectives.composition import compose
from moda_jax.training import devices as devices_lib
from moda_jax.training import train_step as step_lib
from moda_jax.training.optimizers import AdaDelta

STEPS = 3
WIDTH = 0.03
# Dense layers compile soonest, and what methods sum over devices does not
# depend on the network: convolutions need not come with each.
# One of each kind of sum over devices; the others are alike.
FAST = ('moda_fm', 'moe', 'm3sda')
CASES = [
  pytest.param(
    name, 'tiny images', marks=[] if name in FAST else [pytest.mark.slow]
  )
  for name in METHODS
]
CASES.append(pytest.param('moda_fm', 'digits', marks=pytest.mark.slow))
# Between them they have every part whose losses no named method has.
COMPOSED = [
  'smooth_max+averaged+floored,coral,adamatch+mcc,experts',
  'darn+floored,cdan,fixmatch+information,shared',
  'hard_max,mmd,entropy,moe',
]
CASES += [
  pytest.param(parts, 'tiny images', marks=pytest.mark.slow)
  for parts in COMPOSED
]


@pytest.mark.slow
def test_a_platform_that_is_not_there_is_refused():
  program = (
    'from moda_jax import cli; from moda_jax.training import devices; '
    'cli.end_by_message(devices.check_devices)'
  )
  done = subprocess.run(
    [sys.executable, '-c', program],
    env=os.environ | {'JAX_PLATFORMS': 'rocm'},
    capture_output=True,
    text=True,
    timeout=300,
  )
  assert done.returncode == 2
  (line,) = (x for x in done.stderr.splitlines() if 'JAX_PLATFORMS' in x)
  assert line.startswith('JAX_PLATFORMS=rocm: JAX finds no such device here')
  assert 'Traceback' not in done.stderr


@pytest.mark.parametrize(
  ('batch_size', 'wanted', 'chosen'),
  [(8, 0, 8), (20, 0, 5), (7, 0, 7), (11, 0, 1), (20, 4, 4), (8, 1, 1)],
)
def test_as_many_devices_as_divide_the_batch(
  batch_size, wanted, chosen, caplog
):
  """Of the eight that all tests have."""
  assert devices_lib.choose_devices(batch_size, wanted) == chosen
  warnings = [record.message for record in caplog.records]
  if wanted or chosen == 8:
    assert warnings == []
  else:
    (warning,) = warnings
    assert warning.startswith(f'training on {chosen} of 8 devices')


@pytest.mark.parametrize(
  ('batch_size', 'wanted', 'message'),
  [
    (20, 8, r'batch_size = 20 is not divisible by .* devices, 8'),
    (18, 9, r'config.run.devices = 9: there are 8'),
  ],
)
def test_devices_that_cannot_be_are_refused(batch_size, wanted, message):
  with pytest.raises(UserError, match=message):
    devices_lib.choose_devices(batch_size, wanted)


def test_what_several_processes_run_is_what_pmap_runs():
  """On devices of this process, as if there were others."""

  def step(state, batch):
    own = batch.sum() * jax.lax.axis_index(devices_lib.AXIS)
    total = jax.lax.psum(own, devices_lib.AXIS)
    return state + total, {'total': total}

  state = np.float32(2)
  batch = devices_lib.put_on_devices(np.arange(12.0).reshape(4, 3), 4)
  mapped = devices_lib.compile_step(step, 4)(state, batch)
  sharded = devices_lib._compile_for_processes(step, 4, ())(state, batch)
  assert mapped[0] == 2 + sum(i * (9 * i + 3) for i in range(4))
  jax.tree.map(np.testing.assert_array_equal, mapped, sharded)


@pytest.fixture(scope='module')
def config(mini_data_dir):
  config = mini.get_config('mnistm,batch_size=16,samples=64,tau=0.1')
  config.data.data_dir = str(mini_data_dir)
  return config


@pytest.fixture(scope='module')
def all_batches(config):
  """Returns batches with every view and label that any method may declare."""

  spec = BatchSpec(
    target_views=('weak', 'strong'), target_labels=True, source_strong=True
  )
  batch_fn = batches.make_batch_fn(load_domains(config), spec, config)
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


@pytest.mark.slow
def test_eight_devices_are_near_one_in_float32(
  config, all_batches, record_property
):
  """Rounding differs and AdaDelta magnifies it: reported, not bounded."""
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
  axis_name = devices_lib.axis_name(devices)
  networks = NETWORKS[network](width=WIDTH).create(10)
  kind, sources = METHODS.get(name), config.data.sources
  if kind is None:
    kind = compose(*name.split(','))
  options = tiny.fill_options(kind.Options, tau=0.1)
  method = kind(networks, sources, options, axis_name)
  train_state, tx = step_lib.create_train_state(
    kind(networks, sources, options),
    AdaDelta(learning_rate=config.optimizer.learning_rate),
    jax.random.key(0),
    all_batches[0]['target']['weak'][:1],
  )
  if jax.config.jax_enable_x64:
    train_state = jax.tree.map(tiny.in_float64, train_state)
  train_step = devices_lib.compile_step(
    step_lib.make_train_step(method, tx, jax.random.key(0)),
    devices,
    donate_state=True,
  )
  history = []
  for batch in all_batches:
    batch = declared(kind.batch_spec, batch)
    if devices > 1:
      batch = devices_lib.split_over_devices(batch, devices)
    train_state, metrics = train_step(train_state, batch)
    history.append(jax.device_get(metrics))
  return history, jax.device_get(train_state.params)


def declared(spec, batch):
  names = {*spec.target_views, *(['label'] if spec.target_labels else [])}
  target = {k: v for k, v in batch['target'].items() if k in names}
  source = dict(batch['source']) if spec.sources else {}
  if not spec.source_strong:
    source.pop('strong', None)
  return {'source': source, 'target': target}
