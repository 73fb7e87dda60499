"""Exact accuracy on a whole split, on one device or several."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from moda_jax.data.domains import Domains
from moda_jax.data.rows import take_rows
from moda_jax.objectives.method import Method
from moda_jax.training.devices import (
  compile_step,
  finish_in_turn,
  own_devices,
  own_part,
  put_on_devices,
)
from moda_jax.training.train_step import TrainState, as_float

ACCURACY = 'target/accuracy'
DEVIATION = 'target/accuracy_sd'  # over seeds, where there are several


def seed_accuracy(seed: int) -> str:
  """Returns the name of one seed's accuracy, where there are several."""
  return f'{ACCURACY}/seed_{seed}'


class Evaluator:
  """Counts correct predictions on the target's test split, compiled once."""

  def __init__(
    self, method: Method, domains: Domains, batch_size: int, devices: int = 1
  ):
    """Prepares to evaluate.

    Args:
      method: gives the predictions.
      domains: every example of `domains.test` counts once.
      batch_size: examples at a time, over all devices; the last ones are
        padded and masked.
      devices: how many devices share a batch.
    """
    self.method = method
    self._domains = domains
    self._devices = devices
    self._batch_size = -(-batch_size // devices) * devices
    self._part = own_part(self._batch_size)
    self._count_step = compile_step(_make_count_fn(method), devices)
    self._observe_step = compile_step(_make_observe_fn(method), devices)

  def for_domains(self, domains: Domains) -> 'Evaluator':
    """Returns an evaluator on other examples, with nothing compiled again."""
    other = copy.copy(self)
    other._domains = domains
    return other

  def accuracies(self, state: TrainState) -> dict[str, float]:
    """Returns the share classified correctly, by the metric's name.

    For a method that gives several predictions there is one for each, and
    their maximum, which is a choice by target labels. Where the labels of the
    target are not known there is none.

    Args:
      state: what `observe_sources` has returned.
    """
    if self._domains.test.labels is None:
      return {}
    counts = finish_in_turn(
      self._count_step(state, batch) for batch in self._test_batches()
    )
    total = np.sum(jax.device_get(list(counts)), axis=0)
    shares = total / self._domains.test.size
    names = self.method.predictors
    if not names:
      return {ACCURACY: float(shares)}
    each = {
      f'{ACCURACY}/{n}': float(s) for n, s in zip(names, shares, strict=True)
    }
    return each | {ACCURACY: max(each.values())}

  def observe_sources(self, state: TrainState) -> TrainState:
    """Shows the method all source examples, where it asks for them.

    What it keeps of them serves predictions alone: training goes on as if it
    had not been shown.
    """
    if self.method.observe_sources is None:
      return state
    for i, batch in enumerate(self._source_batches()):
      own = own_devices(self._devices)
      first = np.full(own, i == 0) if self._devices > 1 else i == 0
      batch['first'] = np.asarray(first)
      batch = put_on_devices(batch, self._devices)
      state = state.replace(method_state=self._observe_step(state, batch))
    return state

  def _test_batches(self) -> Iterator[dict[str, jax.Array]]:
    test = self._domains.test
    for chosen in self._slices(test.size):
      batch = {
        'input': self._shape(take_rows(test.inputs, chosen)),
        'label': self._shape(test.known_labels[chosen]),
        'mask': self._shape(np.ones(len(test.known_labels[chosen]), bool)),
      }
      yield put_on_devices(batch, self._devices)

  def _source_batches(self) -> Iterator[dict[str, Any]]:
    """Yields all source examples, the shorter sources padded: `[M, B, …]`."""
    sources = self._domains.sources
    axis = 0 if self._devices == 1 else 1
    for chosen in self._slices(max(s.size for s in sources)):
      parts = {
        'weak': [take_rows(s.inputs, chosen) for s in sources],
        'label': [s.known_labels[chosen] for s in sources],
        'mask': [np.ones(len(s.known_labels[chosen]), bool) for s in sources],
      }
      yield {
        'source': {
          key: np.stack([self._shape(x) for x in arrays], axis=axis)
          for key, arrays in parts.items()
        }
      }

  def _slices(self, count: int) -> Iterator[slice]:
    """Yields what this process takes of each batch of `count` examples."""
    own = self._part
    for start in range(0, count, self._batch_size):
      if own is None:
        yield slice(start, start + self._batch_size)
      else:
        yield slice(start + own.start, start + own.stop)

  def _shape(self, x: np.ndarray) -> np.ndarray:
    """Pads to the full batch and splits it over the devices."""
    own = own_devices(self._devices)
    missing = self._batch_size // self._devices * own - len(x)
    x = np.pad(x, ((0, missing), *((0, 0),) * (x.ndim - 1)))
    if self._devices == 1:
      return x
    return x.reshape(own, -1, *x.shape[1:])


def _make_count_fn(method: Method) -> Callable[..., jax.Array]:
  def count(state: TrainState, batch: dict[str, jax.Array]) -> jax.Array:
    probabilities = method.predict(
      state.predicting_params, state.method_state, as_float(batch['input'])
    )
    right = probabilities.argmax(axis=-1) == batch['label']
    total = jnp.sum(right & batch['mask'], axis=-1)
    if method.axis_name is not None:
      total = jax.lax.psum(total, method.axis_name)
    return total

  return count


def _make_observe_fn(method: Method) -> Callable[..., dict]:
  def observe(state: TrainState, batch: dict[str, Any]) -> dict:
    assert method.observe_sources is not None  # see `observe_sources`
    return method.observe_sources(
      state.predicting_params,
      state.method_state,
      as_float({'source': batch['source']}),
      batch['first'],
    )

  return observe
