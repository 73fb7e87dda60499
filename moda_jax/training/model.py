"""A config made into a method and its predictions, without any data."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import ml_collections
import numpy as np
import optax

from moda_jax.data.batches import learns_views
from moda_jax.data.rows import take_rows
from moda_jax.objectives import find_method
from moda_jax.training import devices as devices_lib
from moda_jax.training import several_seeds
from moda_jax.training.options import check
from moda_jax.training.train_step import (
  TrainState,
  as_float,
  create_train_state,
)

_PIXELS_AT_A_TIME = 512 * 32 * 32  # bounds the memory of an evaluation


class Inputs(NamedTuple):
  """What a model takes and gives, recorded with every run.

  Attributes:
    shape: of one input, `(H, W, 3)` for images or `(F,)` for features.
    classes: the class names.
    variant: of the pretrained weights that the network is made for.
    padded: whether images of 28 × 28 were padded, as MNIST's, not resized.
    picture_size: what pictures are brought to before a fixed network computes
      the features that are the inputs; 0 where there is none.
  """

  shape: tuple[int, ...]
  classes: tuple[str, ...]
  variant: str = ''
  padded: bool = False
  picture_size: int = 0

  @property
  def are_images(self) -> bool:
    """Whether inputs are images rather than rows of features."""
    return len(self.shape) == 3


class Model:
  """The method that a config describes, for one seed or several.

  Attributes:
    config: of the run.
    settings: its sections, checked.
    inputs: what it takes and gives.
    method: the objective with its networks.
  """

  def __init__(
    self,
    config: ml_collections.ConfigDict,
    inputs: Inputs,
    total_steps: int = 1,
    devices: int = 1,
  ):
    """Makes networks and method.

    Args:
      config: of the run.
      inputs: what it takes and gives; with a `variant` the networks are made
        without reading pretrained weights.
      total_steps: the length of training.
      devices: how many share a batch.
    """
    self.config = config
    self.settings = check(config)
    axis_name = devices_lib.axis_name(devices)
    networks = self.settings.network.create(
      len(inputs.classes), axis_name, inputs.variant
    )
    self.inputs = inputs._replace(variant=networks.variant)
    self.method = find_method(config.objective)(
      networks,
      tuple(config.data.sources),
      self.settings.objective,
      axis_name,
      total_steps,
    )

  @property
  def seeds(self) -> range:
    """The seeds that train side by side."""
    run = self.settings.run
    return range(run.seed, run.seed + run.seeds)

  @property
  def learns_views(self) -> bool:
    """Whether magnitudes of strong views are learned."""
    return learns_views(self.settings.views, self.method.batch_spec)

  @property
  def eval_batch_size(self) -> int:
    """How many inputs are evaluated at a time: fewer where they are large."""
    size = self.settings.run.eval_batch_size
    if not self.inputs.are_images:
      return size
    height, width, _ = self.inputs.shape
    return max(1, min(size, _PIXELS_AT_A_TIME // (height * width)))

  def create_state(
    self, examples: Sequence[Any] = ()
  ) -> tuple[TrainState, optax.GradientTransformation]:
    """Returns the state before the first step, and the optimizer.

    Args:
      examples: for each seed some of its inputs `[N, …]`, for networks that
        scale by those; by default a single one of zeros.
    """
    zeros = np.zeros((1, *self.inputs.shape), np.float32)
    created = [
      create_train_state(
        self.method,
        self.settings.optimizer,
        jax.random.key(seed),
        x,
        self.learns_views,
      )
      for seed, x in zip(
        self.seeds, examples or [zeros] * len(self.seeds), strict=True
      )
    ]
    states = [state for state, _ in created]
    return several_seeds.stack_states(states), created[0][1]

  @functools.cached_property
  def predict_fn(self) -> Callable[..., jax.Array]:
    """From parameters, method's state and inputs to probabilities `[B, C]`.

    Not compiled; images may be bytes.
    """

    def predict(params: Any, state: Any, x: jax.Array) -> jax.Array:
      probabilities = self.method.predict(params, state, as_float(x))
      if self.method.predictors:
        probabilities = probabilities.mean(axis=0)
      return jnp.asarray(probabilities)

    return several_seeds.average_predictions(predict, len(self.seeds))

  @functools.cached_property
  def _predict(self) -> Any:
    return jax.jit(self.predict_fn)

  def predict(self, state: TrainState, inputs: Any) -> np.ndarray:
    """Returns class probabilities `[B, C]` for prepared inputs `[B, …]`.

    Of several seeds, and of several predictors, it is the mean.
    """
    params = state.predicting_params
    return np.asarray(self._predict(params, state.method_state, inputs))

  def predict_all(self, state: TrainState, inputs: Any) -> np.ndarray:
    """Returns the same for any number of inputs, some at a time."""
    size = self.eval_batch_size
    parts = [
      self.predict(state, take_rows(inputs, slice(start, start + size)))
      for start in range(0, inputs.shape[0], size)
    ]
    return np.concatenate(parts)
