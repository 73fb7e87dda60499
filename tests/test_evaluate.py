import jax
import numpy as np
import pytest
import tiny

from moda_jax import step as step_lib
from moda_jax.evaluate import Evaluator


class Reader:
  """Predicts the class that is written in an image's first pixel."""

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
  method = Reader(step_lib.DEVICES if devices > 1 else None)
  evaluator = Evaluator(
    method, test._replace(inputs=inputs), batch_size, devices
  )
  assert evaluator.accuracy(state) == right / 21
  assert 0 < right < 21
