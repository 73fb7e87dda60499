"""The train state and the compiled step that maps it to the next."""

import functools
from collections.abc import Callable
from typing import Any

import flax
import jax
import jax.numpy as jnp
import optax

from moda_jax.objectives.method import Batch, Method, Metrics, Params, State

DEVICES = 'devices'  # the mapped axis


class TrainState(flax.struct.PyTreeNode):
  """Everything that training changes, one pytree.

  Attributes:
    step: how many steps have been taken.
    params: the method's parameters, source weights β included.
    opt_state: the optimizer's accumulators.
    method_state: what is not trained: batch statistics, set means.
  """

  step: jax.Array
  params: Params
  opt_state: optax.OptState
  method_state: State


def create_train_state(
  method: Method,
  make_optimizer: Callable[[Params], optax.GradientTransformation],
  rng: jax.Array,
  x: jax.Array,
) -> tuple[TrainState, optax.GradientTransformation]:
  """Initialises parameters for inputs like `x` (`[B, …]`) and optimizer."""
  params, method_state = _init(method, rng, as_float(x))
  tx = make_optimizer(params)
  state = TrainState(
    jnp.zeros((), jnp.int32), params, tx.init(params), method_state
  )
  return state, tx


@functools.partial(jax.jit, static_argnums=0)  # compiled once for all seeds
def _init(method: Method, rng: jax.Array, x: jax.Array) -> tuple[Params, State]:
  return method.init(rng, x)


TrainStep = Callable[[TrainState, Batch], tuple[TrainState, Metrics]]


def make_train_step(
  method: Method, tx: optax.GradientTransformation, rng: jax.Array
) -> TrainStep:
  """Returns the step as a pure function, not yet compiled.

  Args:
    method: gives the loss.
    tx: the optimizer.
    rng: the key that every step's own is folded from.
  """

  def train_step(state: TrainState, batch: Batch) -> tuple[TrainState, Metrics]:
    step_rng = jax.random.fold_in(rng, state.step)
    grad_fn = jax.value_and_grad(method.loss, has_aux=True)
    (loss, (metrics, method_state)), grads = grad_fn(
      state.params, state.method_state, as_float(batch), step_rng, state.step
    )
    # Exact only because the losses were averaged before, see Method.
    grads, method_state = method.across_devices((grads, method_state))
    updates, opt_state = tx.update(grads, state.opt_state, state.params)
    metrics |= {'loss': loss, 'gradient_norm': _norm(grads)}
    state = TrainState(
      step=state.step + 1,
      params=optax.apply_updates(state.params, updates),
      opt_state=opt_state,
      method_state=method_state,
    )
    return state, metrics

  return train_step


def _norm(tree: Any) -> jax.Array:
  """The L2 norm of all leaves; products are faster than sums on CPUs."""
  # Else their squares are stored, being what AdaDelta computes too.
  tree = jax.lax.optimization_barrier(tree)
  return jnp.sqrt(sum(jnp.vdot(x, x) for x in jax.tree.leaves(tree)))


def compile_step(
  step_fn: Callable[..., Any], devices: int, donate_state: bool = False
) -> Callable[..., Any]:
  """Compiles `step_fn(state, batch)` for one device or several.

  On several, every array of the batch has the devices as its first axis; the
  state has not, nor have the results, which must be equal on all devices.

  Args:
    step_fn: the pure function.
    devices: how many to use.
    donate_state: whether the memory of the state given is reused; the caller
      must then not look at it again.
  """
  donated = (0,) if donate_state else ()
  if devices == 1:
    return jax.jit(step_fn, donate_argnums=donated)
  return jax.pmap(
    step_fn,
    DEVICES,
    in_axes=(None, 0),
    out_axes=None,
    donate_argnums=donated,
    devices=jax.local_devices()[:devices],
  )


def as_float(tree: Any) -> Any:
  """Images as bytes to floats in 0..1; everything else as it is."""

  def convert(x: jax.Array) -> jax.Array:
    return x.astype(jnp.float32) / 255 if x.dtype == jnp.uint8 else x

  return jax.tree.map(convert, tree)
