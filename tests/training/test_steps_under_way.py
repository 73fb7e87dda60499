"""Dispatch never runs far ahead of execution."""

import pytest
import tiny

from moda_jax.training.devices import STEPS_UNDER_WAY, finish_in_turn
from moda_jax.training.model import Inputs, Model
from moda_jax.training.progress import MetricsBuffer


class Steps:
  """Counts results that were asked for and not yet waited for."""

  def __init__(self):
    self.under_way = self.most = 0

  def dispatch(self):
    self.under_way += 1
    self.most = max(self.most, self.under_way)
    return _Result(self)


class _Result:
  def __init__(self, steps):
    self._steps, self._finished = steps, False

  def block_until_ready(self):
    self._steps.under_way -= not self._finished
    self._finished = True
    return self


def test_results_come_in_turn_with_few_under_way():
  steps = Steps()
  dispatched = []

  def dispatch():
    for _ in range(10):
      dispatched.append(steps.dispatch())
      yield dispatched[-1]

  assert list(finish_in_turn(dispatch())) == dispatched
  assert steps.most == STEPS_UNDER_WAY + 1


def test_the_buffer_of_metrics_waits():
  steps, buffer = Steps(), MetricsBuffer()
  for step in range(10):
    buffer.add(step, {'loss': steps.dispatch()})
  assert steps.most == STEPS_UNDER_WAY + 1
  assert steps.under_way == STEPS_UNDER_WAY


@pytest.mark.parametrize(
  ('shape', 'size'),
  [((32, 32, 3), 500), ((256, 256, 3), 8), ((2000, 2000, 3), 1), ((9,), 500)],
)
def test_large_images_are_evaluated_few_at_a_time(shape, size):
  config = tiny.make_run_config()
  config.run.eval_batch_size = 500
  model = Model(config, Inputs(shape, ('a', 'b', 'c')))
  assert model.eval_batch_size == size
