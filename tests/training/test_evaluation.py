import jax
import numpy as np
import pytest
import tiny

from moda_jax.objectives import METHODS
from moda_jax.training import devices as devices_lib
from moda_jax.training import train_step as step_lib
from moda_jax.training.evaluation import Evaluator


class Reader:
  """Predicts the class that is written in an image's first pixel."""

  predictors = ()
  observe_sources = None

  def __init__(self, axis_name):
    self.axis_name = axis_name

  def predict(self, params, state, x):
    del params, state
    return jax.nn.one_hot((x[:, 0, 0, 0] * 255).round().astype(int), 4)


@pytest.mark.parametrize('devices', [1, 8])
@pytest.mark.parametrize('batch_size', [1, 8, 16, 100])
def test_every_example_counts_exactly_once(devices, batch_size):
  test = tiny.make_domains().test  # 21 examples: no batch size divides it
  inputs = test.inputs.copy()
  rng = np.random.default_rng(0)
  inputs[:, 0, 0, 0] = np.where(rng.random(21) < 0.6, test.labels, 3)
  # Padding is black, which reads as class 0: it must not count.
  right = (inputs[:, 0, 0, 0] == test.labels).sum()
  state = step_lib.TrainState(np.zeros(()), {}, {}, {})
  method = Reader(devices_lib.axis_name(devices))
  data = tiny.make_domains()._replace(test=test._replace(inputs=inputs))
  evaluator = Evaluator(method, data, batch_size, devices)
  assert evaluator.accuracies(state) == {'target/accuracy': right / 21}
  assert 0 < right < 21


@pytest.mark.parametrize('devices', [1, 8])
def test_source_sets_take_in_every_source_example_once(devices):
  """The counts that MoE keeps are those of the labels, whatever the batch."""
  axis_name = devices_lib.axis_name(devices)
  networks = tiny.create_networks(axes=3)
  method = METHODS['moe'](
    networks, ('a', 'b', 'c'), tiny.make_options('moe'), axis_name
  )
  data = tiny.make_domains()
  params, state = tiny.init(
    method, {'target': {'weak': data.test.inputs / 255}}
  )
  evaluator = Evaluator(method, data, 16, devices)
  state = evaluator.observe_sources(
    step_lib.TrainState(np.zeros(()), params, {}, state)
  )
  expected = [np.bincount(d.labels, minlength=3) for d in data.sources]
  np.testing.assert_array_equal(
    state.method_state['all_sets']['count'], expected
  )
