"""This project's training step, ready to be timed and looked into."""

import dataclasses
import itertools
import time
from collections.abc import Callable
from typing import Any

import jax
import ml_collections
import numpy as np

from experiments.benchmark import flops
from moda_jax.data.domains import Domains
from moda_jax.models.networks import Networks
from moda_jax.training.experiment import Experiment
from moda_jax.training.train_step import as_float

_WARM_UP = 2
_GAP = 1000  # steps between the live batches of two turns


class Ours:
  """An experiment on one device, its state and a kept batch.

  Attributes:
    experiment: what is trained.
    state: after the steps taken so far.
    first_step_seconds: what the first step took, compiling included; None
      before it.
  """

  def __init__(self, config: ml_collections.ConfigDict, domains: Domains):
    self.experiment = Experiment(config, domains, devices=1)
    self.state = self.experiment.initial_state
    self.first_step_seconds = None
    self._kept = jax.device_put(self.experiment.make_batch(0))
    self._turn = 0

  def time_steps(self, count: int, live: bool = False) -> float:
    """Takes steps on the kept batch or live ones; returns seconds per step."""
    if live:
      self._turn += 1
      feed = self.experiment.make_batches(self._turn * _GAP)
      # What was made ahead before the clock starts is not made live.
      for _ in range(_WARM_UP):
        next(feed)
    else:
      feed = itertools.repeat(self._kept)
    jax.block_until_ready(self.state)
    start = time.perf_counter()
    for _ in range(count):
      self.state, _metrics = self.experiment.train_step(self.state, next(feed))
    jax.block_until_ready(self.state)
    seconds = time.perf_counter() - start
    if self.first_step_seconds is None:
      self.first_step_seconds = seconds / count
    return seconds / count

  def loss_and_gradients(self) -> tuple[float, dict[str, np.ndarray]]:
    """Returns the loss of the kept batch and its gradients by path.

    In float64: in float32 a ReLU that opens by rounding alone changes the
    gradients of a ResNet by percents.
    """
    method = self.experiment.method
    own, method.networks = method.networks, _without_dtype(method.networks)
    with jax.enable_x64(True):
      state, batch = _as_float64((self.state, self.experiment.make_batch(0)))
      loss, grads = jax.jit(self._differentiate)(state, batch)
      found = float(loss), _flatten(grads)
    method.networks = own
    return found

  def count_flops(self) -> int:
    """Returns the operations of the products in loss and gradients."""
    jaxpr = jax.make_jaxpr(self._differentiate)(self.state, self._kept)
    return flops.count(jaxpr.jaxpr)

  def count_kept_bytes(self) -> int:
    """Returns what the forward pass keeps for the backward one.

    No compiler has a part in it. Parameters do not count.
    """
    state = self.state

    def run_forward(params: Any, batch: Any) -> Any:
      loss_fn = self._make_loss_fn(state, batch)
      return jax.vjp(loss_fn, params)[1]  # a tree of what it keeps

    shapes = jax.eval_shape(run_forward, state.params, self._kept)
    kept = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(shapes))
    return kept - sum(x.nbytes for x in jax.tree.leaves(state.params))

  def count_reserved_bytes(self) -> int:
    """Returns what XLA sets aside for a step beside parameters and batch."""
    lowered = self.experiment.train_step.lower(self.state, self._kept)
    return lowered.compile().memory_analysis().temp_size_in_bytes

  def count_parameters(self) -> int:
    """Returns how many numbers are trained."""
    return sum(x.size for x in jax.tree.leaves(self.state.params))

  def save_for_twin(self, weights: str, batch: str) -> None:
    """Writes the weights and the kept batch as .npz files."""
    np.savez(weights, **_flatten(self.state.params))
    kept = self.experiment.make_batch(0)
    np.savez(
      batch,
      source=kept['source']['weak'],
      label=kept['source']['label'],
      weak=kept['target']['weak'],
      strong=kept['target']['strong'],
    )

  def save_data_for_twin(self, path: str) -> None:
    """Writes the examples of all domains, the target's last, as .npz."""
    domains = self.experiment.domains
    each = (*domains.sources, domains.target)
    inputs = [d.inputs for d in each]
    dense = [x if isinstance(x, np.ndarray) else x.toarray() for x in inputs]
    labels = np.stack([d.labels for d in each])
    np.savez(path, inputs=np.stack(dense), labels=labels)

  def _differentiate(self, state: Any, batch: Any) -> tuple[jax.Array, Any]:
    loss_fn = self._make_loss_fn(state, batch)
    return jax.value_and_grad(loss_fn)(state.params)

  def _make_loss_fn(self, state: Any, batch: Any) -> Callable[..., jax.Array]:
    def loss_fn(params: Any) -> jax.Array:
      loss, _ = self.experiment.method.loss_and_aux(
        params,
        state.method_state,
        as_float(batch),
        jax.random.key(0),
        state.step,
      )
      return loss

    return loss_fn


def _as_float64(tree: Any) -> Any:
  """Converts floats to float64 and images to 0..1; leaves everything else."""

  def convert(x: Any) -> Any:
    x = np.asarray(x)
    if x.dtype == np.uint8:
      return x.astype(np.float64) / 255
    return x.astype(np.float64) if x.dtype == np.float32 else x

  return jax.tree.map(convert, tree)


def _without_dtype(networks: Networks) -> Networks:
  """Has networks that know a type compute in that of their parameters."""
  parts = {
    name: part.clone(design=dataclasses.replace(part.design, dtype=None))
    for name, part in networks._asdict().items()
    if hasattr(part, 'design')
  }
  return networks._replace(**parts)


def _flatten(tree: Any) -> dict[str, np.ndarray]:
  leaves = jax.tree_util.tree_leaves_with_path(tree)
  return {
    jax.tree_util.keystr(path, simple=True, separator='/'): np.asarray(leaf)
    for path, leaf in leaves
  }
