"""Exact accuracy on a whole split, on one device or several."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from moda_jax.data.domains import Domain
from moda_jax.objectives.method import Method
from moda_jax.step import TrainState, as_float, compile_step


class Evaluator:
  """Counts right predictions on a domain, compiled once."""

  def __init__(
    self, method: Method, domain: Domain, batch_size: int, devices: int = 1
  ):
    """Prepares to evaluate.

    Args:
      method: gives the predictions.
      domain: all of it counts, each example once.
      batch_size: examples at a time, over all devices; the last ones are
        padded and masked.
      devices: how many devices share a batch.
    """
    self._domain = domain
    self._devices = devices
    self._batch_size = -(-batch_size // devices) * devices
    self._count_step = compile_step(_make_count_fn(method), devices)

  def accuracy(self, state: TrainState) -> float:
    """The share of the domain that is classified right."""
    counts = [self._count_step(state, b) for b in self._batches()]
    return sum(int(c) for c in counts) / len(self._domain.labels)

  def _batches(self) -> Iterator[dict[str, np.ndarray]]:
    domain, size = self._domain, self._batch_size
    for start in range(0, len(domain.labels), size):
      chosen = slice(start, start + size)
      batch = {
        'input': domain.inputs[chosen],
        'label': domain.labels[chosen],
        'mask': np.ones(len(domain.labels[chosen]), bool),
      }
      yield {k: self._shape(x) for k, x in batch.items()}

  def _shape(self, x: np.ndarray) -> np.ndarray:
    """Pads to the full batch and splits it over the devices."""
    missing = self._batch_size - len(x)
    x = np.pad(x, ((0, missing), *((0, 0),) * (x.ndim - 1)))
    if self._devices == 1:
      return x
    return x.reshape(self._devices, -1, *x.shape[1:])


def _make_count_fn(method: Method) -> Any:
  def count(state: TrainState, batch: dict[str, jax.Array]) -> jax.Array:
    probabilities = method.predict(
      state.params, state.method_state, as_float(batch['input'])
    )
    right = probabilities.argmax(axis=-1) == batch['label']
    total = jnp.sum(right & batch['mask'])
    if method.axis_name is not None:
      total = jax.lax.psum(total, method.axis_name)
    return total

  return count
