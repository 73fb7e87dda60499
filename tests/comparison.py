"""Runs compared bit by bit: the whole state, and what was logged."""

import jax
import numpy as np

from moda_jax.training.run_folder import read_metrics

_BY_THE_CLOCK = ('steps_per_second', 'images_per_second')


def assert_same_state(one, other):
  """Compares outcomes: parameters, optimizer, method's state and step."""
  jax.tree.map(
    np.testing.assert_array_equal,
    jax.device_get(one.state),
    jax.device_get(other.state),
  )


def logged(workdir):
  """Returns the lines of a run without what depends on the clock."""
  return [
    {name: x for name, x in line.items() if name not in _BY_THE_CLOCK}
    for line in read_metrics(workdir)
  ]
