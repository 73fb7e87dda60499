"""Exact accuracy on a whole split, and criteria that need no labels."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from moda_jax.data.domains import Domain, Domains
from moda_jax.data.rows import take_rows
from moda_jax.models.networks import pooled
from moda_jax.objectives.method import Method
from moda_jax.selection.observed import Held, Observed
from moda_jax.training import judging
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
_FLAT = 256  # features; larger ones are averaged over space


def seed_accuracy(seed: int) -> str:
  """Returns the name of one seed's accuracy, where there are several."""
  return f'{ACCURACY}/seed_{seed}'


class Evaluator:
  """Predicts and counts, on one device or several, compiled once."""

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
    self._predict_step = compile_step(_make_predict_fn(method), devices)
    self._look_step = compile_step(_make_look_fn(method), devices)
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
    test = self._domains.test
    if test.labels is None:
      return {}
    everything = np.arange(test.size)
    probabilities = self._run(self._predict_step, state, test, everything)
    right = probabilities.argmax(axis=-1) == test.labels
    shares = right.sum(axis=-1) / test.size
    names = self.method.predictors
    if not names:
      return {ACCURACY: float(shares)}
    each = {
      f'{ACCURACY}/{n}': float(s) for n, s in zip(names, shares, strict=True)
    }
    return each | {ACCURACY: max(each.values())}

  def judge(self, state: TrainState) -> dict[str, float]:
    """Returns what the criteria say of the model, by the metric's name.

    They see no label of the target: predictions for its training examples, at
    most 2,000, the same ones in every run; and for examples held out of the
    sources, at most 2,000 of all together. Of a method that gives several
    predictions they judge the mean.

    Args:
      state: what `observe_sources` has returned.
    """
    sources, target = self._domains.held, self._domains.target
    chosen = judging.draw(target)
    if not sources:
      seen = self._run(self._predict_step, state, target, chosen)
      return judging.judge(Observed(self._average(seen)))
    probabilities, features = self._look(state, target, chosen)
    share = -(-judging.JUDGED // len(sources))
    drawn = [judging.draw(source, share) for source in sources]
    looked = [
      self._look(state, *own) for own in zip(sources, drawn, strict=True)
    ]
    labels = [s.known_labels[d] for s, d in zip(sources, drawn, strict=True)]
    held = Held(
      np.concatenate([p for p, _ in looked]),
      np.concatenate(labels),
      np.concatenate([f for _, f in looked]),
    )
    return judging.judge(Observed(probabilities, features, held))

  def _look(
    self, state: TrainState, domain: Domain, chosen: np.ndarray
  ) -> tuple[np.ndarray, np.ndarray]:
    """Returns probabilities `[N, C]` and features `[N, F]`."""
    probabilities, z = self._run(self._look_step, state, domain, chosen)
    return self._average(probabilities), z

  def _average(self, probabilities: np.ndarray) -> np.ndarray:
    return probabilities.mean(0) if self.method.predictors else probabilities

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

  def _run(
    self,
    step: Callable[..., Any],
    state: TrainState,
    domain: Domain,
    chosen: np.ndarray,
  ) -> Any:
    """Returns what a compiled step gives for some examples, `[…, N, …]`."""
    results = finish_in_turn(
      step(state, put_on_devices(self._shape(rows), self._devices))
      for part in self._slices(len(chosen))
      for rows in [take_rows(domain.inputs, chosen[part])]
    )
    fetched = [jax.device_get(result) for result in results]
    # Padding comes last: examples are in order over devices and processes.
    return jax.tree.map(
      lambda *parts: np.concatenate(parts, axis=-2)[..., : len(chosen), :],
      *fetched,
    )

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


def _make_predict_fn(method: Method) -> Callable[..., jax.Array]:
  def predict(state: TrainState, inputs: jax.Array) -> jax.Array:
    probabilities = method.predict(
      state.predicting_params, state.method_state, as_float(inputs)
    )
    return _gather(probabilities, method)  # [predictors, B, C], or [B, C]

  return predict


def _make_look_fn(
  method: Method,
) -> Callable[..., tuple[jax.Array, jax.Array]]:
  predict, extract = _make_predict_fn(method), _make_extract_fn(method)

  def look(state: TrainState, inputs: jax.Array) -> tuple[jax.Array, jax.Array]:
    return predict(state, inputs), _gather(extract(state, inputs), method)

  return look


def _make_extract_fn(method: Method) -> Callable[..., jax.Array]:
  """Returns a function from state and inputs `[B, …]` to features `[B, F]`."""

  def extract(state: TrainState, inputs: jax.Array) -> jax.Array:
    z = method.extract(
      state.predicting_params, state.method_state, as_float(inputs)
    )
    flat = z.reshape(len(z), -1)
    flat = flat if flat.shape[1] <= _FLAT else pooled(z)
    return flat.astype(jnp.float32)  # NumPy has no narrower type of all kinds

  return extract


def _gather(rows: jax.Array, method: Method) -> jax.Array:
  """Returns the rows `[…, B, F]` of all devices, in order."""
  if method.axis_name is None:
    return rows
  axis = rows.ndim - 2
  return jax.lax.all_gather(rows, method.axis_name, axis=axis, tiled=True)


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
