"""A run that starts from the last state of another one, with other values."""

import os
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from moda_jax.errors import UserError
from moda_jax.training.checksums import describe_arrays
from moda_jax.training.recorded import read_recorded
from moda_jax.training.saved_states import (
  find_sound,
  find_steps,
  read_arrays,
  read_kinds,
  read_state,
)
from moda_jax.training.train_step import TrainState

_SHOWN = 3  # arrays that are named where they do not fit


def check_origin(
  origin: str | os.PathLike, workdir: str | os.PathLike
) -> pathlib.Path:
  """Returns the folder that a run starts from; refuses what is not one."""
  path, own = pathlib.Path(origin).absolute(), pathlib.Path(workdir).absolute()
  if path.resolve() == own.resolve():
    raise UserError(
      f"--from='{origin}' is the run itself: without --from it resumes."
    )
  if not find_steps(own):  # else it has started from there already
    read_recorded(path)
    if not find_steps(path):
      raise UserError(f"--from='{origin}' does not hold a checkpoint yet.")
  return path


def take_over(
  initial: TrainState, origin: pathlib.Path, total_steps: int
) -> tuple[TrainState, bool]:
  """Returns the state that a run starts with, and if the optimizer's fits.

  Step, parameters, the method's state and the moving average are those of the
  other run, so that batches and schedules go on; so are the accumulators of the
  optimizer where it has the same, and the weights of learned views where either
  both runs have them or neither. Where the other run has no moving average,
  this one's begins with the parameters.

  Args:
    initial: what the run would start with by itself.
    origin: the folder of the other run.
    total_steps: the length of this run.
  """

  def read(step: int) -> tuple[TrainState, bool]:
    kinds = read_kinds(origin, step)
    _refuse_others(kinds, initial, origin)
    if _has_same_optimizer(kinds, initial):
      return read_state(origin, step, _like_saved(kinds, initial)).state, True
    found = read_arrays(origin, step)
    return found.replace(
      opt_state=initial.opt_state, view_weights=initial.view_weights
    ), False

  found, _ = find_sound(origin, read, together=True)
  if found is None:
    raise UserError(f"--from='{origin}' does not hold a checkpoint any more.")
  state, fits = found
  step = int(state.step)
  if step >= total_steps:
    raise UserError(
      f"--from='{origin}' is at step {step}, and this run ends at step "
      f'{total_steps}: it needs more steps or epochs.'
    )
  if not fits:
    state = state.replace(opt_state=_count_from(step, state.opt_state))
  if initial.ema_params is None:
    state = state.replace(ema_params=None)
  else:
    state = state.replace(ema_params=state.predicting_params)
  # Each array has memory of its own: the first step consumes it.
  return jax.tree.map(_place, initial, state), fits


def _place(like: jax.Array, value: Any) -> jax.Array:
  placed = jnp.array(np.asarray(value), like.dtype, copy=True)
  return jax.device_put(placed, like.sharding)


def _has_same_optimizer(kinds: dict[str, str], initial: TrainState) -> bool:
  names = ('opt_state/', 'view_weights/')
  there = {k: v for k, v in kinds.items() if k.startswith(names)}
  return there == describe_arrays(
    {'opt_state': initial.opt_state, 'view_weights': initial.view_weights}
  )


def _like_saved(kinds: dict[str, str], initial: TrainState) -> TrainState:
  """Returns the state with a moving average if the checkpoint has one."""
  has = any(name.startswith('ema_params/') for name in kinds)
  return initial.replace(ema_params=initial.params if has else None)


def _refuse_others(
  kinds: dict[str, str], initial: TrainState, origin: pathlib.Path
) -> None:
  """Refuses a state of other networks, or of another method."""
  parts = {'params': initial.params, 'method_state': initial.method_state}
  here = describe_arrays(parts)
  named = tuple(f'{name}/' for name in parts)
  there = {k: v for k, v in kinds.items() if k.startswith(named)}
  differing = [
    f'{name} is {there.get(name, "missing")} there and '
    f'{here.get(name, "missing")} here'
    for name in sorted(here | there)
    if here.get(name) != there.get(name)
  ]
  if differing:
    more = len(differing) - _SHOWN
    rest = f'; and {more} more' if more > 0 else ''
    raise UserError(
      f"--from='{origin}' does not fit this config: "
      f'{"; ".join(differing[:_SHOWN])}{rest}.'
    )


def _count_from(step: int, opt_state: Any) -> Any:
  """Lets schedules of a new optimizer go on from a step."""

  def is_schedule(node: Any) -> bool:
    return isinstance(node, optax.ScaleByScheduleState)

  return jax.tree.map(
    lambda node: (
      node._replace(count=jnp.full_like(node.count, step))
      if is_schedule(node)
      else node
    ),
    opt_state,
    is_leaf=is_schedule,
  )
