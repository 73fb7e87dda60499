"""AdaDelta over the whole parameter tree, with a rate for each pattern."""

import math
import re
from typing import Any

import jax
import jax.numpy as jnp
import ml_collections
import optax

from moda_jax.errors import UserError


def create_optimizer(
  config: ml_collections.ConfigDict, params: Any
) -> optax.GradientTransformation:
  """Returns AdaDelta at the config's rate times each parameter's multiple."""
  multipliers = rate_multipliers(config.rate_multipliers, params)
  if 'beta' in params:
    multipliers['beta'] *= config.beta_rate
  adadelta = optax.chain(
    scale_by_adadelta(config.adadelta_rho, config.adadelta_eps),
    optax.scale_by_learning_rate(config.learning_rate),
  )
  if all(multiple == 1 for multiple in jax.tree.leaves(multipliers)):
    return adadelta
  return optax.chain(adadelta, _scale_by(multipliers))


def scale_by_adadelta(rho: float, eps: float) -> optax.GradientTransformation:
  """`optax.scale_by_adadelta` with one root of a quotient instead of two.

  XLA makes a reciprocal root of optax's quotient of roots, and takes ten times
  as long for that on CPUs: half the time of a training step.

  Args:
    rho: what the running averages of squares keep at a step.
    eps: added to them.
  """

  def update(
    grads: Any, state: optax.ScaleByAdaDeltaState, params: Any = None
  ) -> tuple[Any, optax.ScaleByAdaDeltaState]:
    del params

    def follow(average: jax.Array, x: jax.Array) -> jax.Array:
      return rho * average + (1 - rho) * x**2

    e_g = jax.tree.map(follow, state.e_g, grads)
    updates = jax.tree.map(
      lambda g, e_x, e_g: g * jnp.sqrt((e_x + eps) / (e_g + eps)),
      grads,
      state.e_x,
      e_g,
    )
    e_x = jax.tree.map(follow, state.e_x, updates)
    return updates, optax.ScaleByAdaDeltaState(e_g=e_g, e_x=e_x)

  init = optax.scale_by_adadelta(rho, eps).init
  return optax.GradientTransformation(init, update)


def rate_multipliers(
  patterns: tuple[tuple[str, float], ...], params: Any
) -> Any:
  """Returns a tree like `params` of multiples of the learning rate.

  Args:
    patterns: pairs of a regular expression and a multiple. The first pattern
      found in a parameter's path (`classifier/Dense_2/kernel`) counts.
    params: the parameters; a pattern must cover each.
  """
  pairs = patterns if isinstance(patterns, tuple | list) else [None]
  if not all(_is_pair(pair) for pair in pairs):
    raise UserError(
      f'config.rate_multipliers = {patterns!r} must be pairs of a pattern and '
      "a finite number, such as (('^beta$', 0.1), ('.*', 1.0))."
    )

  def find(path: tuple[Any, ...], _: Any) -> float:
    name = jax.tree_util.keystr(path, simple=True, separator='/')
    for pattern, multiple in patterns:
      if _found(pattern, name):
        return multiple
    raise UserError(
      f"config.rate_multipliers: no pattern of {patterns} covers '{name}'."
    )

  return jax.tree.map_with_path(find, params)


def _is_pair(pair: Any) -> bool:
  if not isinstance(pair, tuple | list) or len(pair) != 2:
    return False
  pattern, multiple = pair
  is_number = isinstance(multiple, int | float) and math.isfinite(multiple)
  return isinstance(pattern, str) and is_number


def _found(pattern: str, name: str) -> bool:
  try:
    return re.search(pattern, name) is not None
  except re.error as error:
    raise UserError(
      f"config.rate_multipliers: '{pattern}' is no regular expression: {error}."
    ) from error


def _scale_by(multipliers: Any) -> optax.GradientTransformation:
  def update(updates: Any, params: Any = None) -> Any:
    del params
    return jax.tree.map(lambda u, m: u * m, updates, multipliers)

  return optax.stateless(update)
