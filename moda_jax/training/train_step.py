"""The train state and the compiled step that maps it to the next."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import flax
import jax
import jax.numpy as jnp
import numpy as np
import optax

from moda_jax.models.published_weights import insert_weights
from moda_jax.objectives.forward import Batch, Metrics, Params, State
from moda_jax.objectives.method import Method
from moda_jax.objectives.metrics import (
  GRADIENT_NORM,
  LOSS,
  SKIPPED,
  VIEW_MAGNITUDE,
)
from moda_jax.training.learned_views import Learning, Weights, first_weights
from moda_jax.training.optimizers import OptimizerOptions, create_optimizer
from moda_jax.training.sharpness import value_and_sharp_grad


class TrainState(flax.struct.PyTreeNode):
  """Everything that training changes, one pytree.

  Attributes:
    step: how many steps have been taken.
    params: the method's parameters, source weights β included.
    opt_state: the optimizer's accumulators.
    method_state: what is not trained: batch statistics, set means.
    ema_params: the moving average of the parameters; None where none is kept.
    view_weights: of magnitudes of strong views; None where none are learned.
  """

  step: jax.Array
  params: Params
  opt_state: optax.OptState
  method_state: State
  ema_params: Params | None = None
  view_weights: Weights | None = None

  @property
  def predicting_params(self) -> Params:
    """What is evaluated and predicted with."""
    return self.params if self.ema_params is None else self.ema_params


def create_train_state(
  method: Method,
  options: OptimizerOptions,
  rng: jax.Array,
  x: jax.Array | np.ndarray,
  learns_views: bool = False,
) -> tuple[TrainState, optax.GradientTransformation]:
  """Initialises parameters and optimizer.

  Where the method's networks have weights to start from, these are put in.

  Args:
    method: has the parameters.
    options: of the optimizer.
    rng: what parameters are drawn with.
    x: inputs like those of training, `[B, …]`.
    learns_views: whether magnitudes of strong views are learned.
  """
  params, method_state = _init(method, rng, as_float(x))
  weights = method.networks.weights
  if weights is not None:
    params, method_state = insert_weights(weights, params, method_state)
  tx = create_optimizer(options, params, method.total_steps)
  state = TrainState(
    step=jnp.zeros((), jnp.int32),
    params=params,
    opt_state=tx.init(params),
    method_state=method_state,
    ema_params=jax.tree.map(jnp.copy, params) if options.ema_decay else None,
    view_weights=first_weights() if learns_views else None,
  )
  return state, tx


@functools.partial(jax.jit, static_argnums=0)  # compiled once for all seeds
def _init(method: Method, rng: jax.Array, x: jax.Array) -> tuple[Params, State]:
  return method.init(rng, x)


class StepOptions(NamedTuple):
  """What a step may do beside following the gradient.

  Attributes:
    ema_decay: of the moving average of the parameters, where the state has one.
    skip_nonfinite: whether a step whose loss or gradients are not finite
      leaves everything but the number of the step as it was.
    sam_rho: ρ of SDAT, see `sharpness`; 0 leaves it out.
    learning: of magnitudes of strong views, where the state has weights of
      these.
  """

  ema_decay: float = 0.0
  skip_nonfinite: bool = False
  sam_rho: float = 0.0
  learning: Learning | None = None


TrainStep = Callable[[TrainState, Batch], tuple[TrainState, Metrics]]


def make_train_step(
  method: Method,
  tx: optax.GradientTransformation,
  rng: jax.Array,
  options: StepOptions | None = None,
) -> TrainStep:
  """Returns the step as a pure function, not yet compiled.

  Args:
    method: gives the loss.
    tx: the optimizer.
    rng: the key that every step's own is folded from.
    options: what else there is to a step; nothing by default.
  """
  ema_decay, skip_nonfinite, sam_rho, learning = options or StepOptions()
  grad_fn = jax.value_and_grad(method.loss_and_aux, has_aux=True)
  if sam_rho:
    grad_fn = functools.partial(value_and_sharp_grad, method, sam_rho)

  def train_step(state: TrainState, batch: Batch) -> tuple[TrainState, Metrics]:
    step_rng = jax.random.fold_in(rng, state.step)
    batch = as_float(batch)
    (loss, (metrics, method_state)), grads = grad_fn(
      state.params, state.method_state, batch, step_rng, state.step
    )
    # Exact only because the losses were averaged before, see Method.
    grads, method_state = method.across_devices((grads, method_state))
    updates, opt_state = tx.update(grads, state.opt_state, state.params)
    metrics |= {LOSS: loss, GRADIENT_NORM: _norm(grads)}
    params = optax.apply_updates(state.params, updates)
    ema_params = state.ema_params
    if ema_params is not None:
      ema_params = optax.incremental_update(params, ema_params, 1 - ema_decay)
    view_weights = state.view_weights
    if learning is not None:
      view_weights = learning.observe(method, state, batch['probe'])
      metrics[VIEW_MAGNITUDE] = learning.mean_magnitude(state)
    after = TrainState(
      step=state.step + 1,
      params=params,
      opt_state=opt_state,
      method_state=method_state,
      ema_params=ema_params,
      view_weights=view_weights,
    )
    if skip_nonfinite:
      finite = jnp.isfinite(loss) & jnp.isfinite(metrics[GRADIENT_NORM])
      after = _choose(finite, after, state)
      metrics[SKIPPED] = ~finite
    return after, metrics

  return train_step


def _choose(
  condition: jax.Array, one: TrainState, other: TrainState
) -> TrainState:
  """Returns `one` where the condition holds, else `other`; its step anyway."""
  step = one.step
  # Otherwise the choice is fused with the update, which may then round
  # differently.
  one = jax.lax.optimization_barrier(one.replace(step=None))
  chosen = jax.tree.map(
    lambda a, b: jnp.where(condition, a, b), one, other.replace(step=None)
  )
  return chosen.replace(step=step)


def _norm(tree: Any) -> jax.Array:
  """Returns the L2 norm of all leaves; products beat sums on CPUs."""
  # Otherwise their squares are stored, since AdaDelta computes them too.
  tree = jax.lax.optimization_barrier(tree)
  return jnp.sqrt(sum(jnp.vdot(x, x) for x in jax.tree.leaves(tree)))


def as_float(tree: Any) -> Any:
  """Converts images from bytes to floats in 0..1; leaves everything else."""

  def convert(x: jax.Array) -> jax.Array:
    return x.astype(jnp.float32) / 255 if x.dtype == jnp.uint8 else x

  return jax.tree.map(convert, tree)
