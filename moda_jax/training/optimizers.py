"""Optimizers by name, over the whole parameter tree, β included.

An optimizer is a dataclass of its options with a method that gives optax's
transformation of gradients; what all have in common (clipping, weight decay,
schedules, a rate for each pattern of parameters) is put around it.
"""

import abc
import dataclasses
import math
import re
from typing import Any

import jax
import jax.numpy as jnp
import optax

from moda_jax.config import option
from moda_jax.errors import UserError

_BETA = 'beta'  # the source weights, in the parameter tree


@dataclasses.dataclass(frozen=True)
class OptimizerOptions(abc.ABC):
  """Options of every optimizer.

  Attributes:
    learning_rate: at its largest.
    schedule: 'constant'; 'cosine', to 0 at the last step; or 'dann', the decay
      (1 + 10 p)^−0.75 with the progress p of training from 0 to 1.
    warmup_steps: how many steps the rate rises from 0 for.
    weight_decay: of all parameters but β, added to the gradients; AdamW alone
      subtracts it from the parameters themselves.
    clip_norm: the largest norm of the gradients; 0 does not limit them.
    rate_multipliers: pairs of a pattern and a multiple of the rate; the first
      pattern found in a parameter's path counts.
    beta_rate: a further multiple, of the source weights β alone.
    sam_rho: ρ of SDAT, how far the parameters are moved against the task loss
      before its gradient is taken; 0.02 in its paper, 0 leaves that out.
    ema_decay: what a moving average of the parameters keeps at a step; where it
      is above 0, that average is what is evaluated and predicted with.
  """

  learning_rate: float = option(0.1, above=0)
  schedule: str = option('constant', choices=('constant', 'cosine', 'dann'))
  warmup_steps: int = option(0, least=0)
  weight_decay: float = option(0.0, least=0)
  clip_norm: float = option(0.0, least=0)
  rate_multipliers: tuple[tuple[str, float], ...] = option((('.*', 1.0),))
  beta_rate: float = option(1.0, least=0)
  sam_rho: float = option(0.0, least=0)
  ema_decay: float = option(0.0, least=0, below=1)

  @abc.abstractmethod
  def transformation(self) -> optax.GradientTransformation:
    """Returns what turns gradients into steps, before the rate is applied."""


@dataclasses.dataclass(frozen=True)
class AdaDelta(OptimizerOptions):
  """AdaDelta (Zeiler 2012), the paper's optimizer."""

  rho: float = option(0.9, least=0, below=1)
  adadelta_eps: float = option(1e-6, above=0)

  def transformation(self) -> optax.GradientTransformation:
    """See the base class."""
    return scale_by_adadelta(self.rho, self.adadelta_eps)


@dataclasses.dataclass(frozen=True)
class Sgd(OptimizerOptions):
  """Stochastic gradient descent with momentum."""

  momentum: float = option(0.9, least=0, below=1)
  nesterov: bool = option(False)

  def transformation(self) -> optax.GradientTransformation:
    """See the base class."""
    if not self.momentum:
      return optax.identity()
    return optax.trace(self.momentum, self.nesterov)


@dataclasses.dataclass(frozen=True)
class Adam(OptimizerOptions):
  """Adam (Kingma & Ba 2015)."""

  b1: float = option(0.9, least=0, below=1)
  b2: float = option(0.999, least=0, below=1)
  adam_eps: float = option(1e-8, above=0)

  def transformation(self) -> optax.GradientTransformation:
    """See the base class."""
    return optax.scale_by_adam(self.b1, self.b2, self.adam_eps)


@dataclasses.dataclass(frozen=True)
class AdamW(Adam):
  """Adam with decoupled weight decay (Loshchilov & Hutter 2019)."""


OPTIMIZERS: dict[str, type[OptimizerOptions]] = {
  'adadelta': AdaDelta,
  'sgd': Sgd,
  'adam': Adam,
  'adamw': AdamW,
}


def create_optimizer(
  options: OptimizerOptions, params: Any, total_steps: int
) -> optax.GradientTransformation:
  """Returns one transformation for the whole tree.

  Args:
    options: an instance of one of `OPTIMIZERS`.
    params: the parameters, all of which some pattern of rates must cover.
    total_steps: the length of training, for schedules.
  """
  multipliers = rate_multipliers(options.rate_multipliers, params)
  if _BETA in params:
    multipliers[_BETA] *= options.beta_rate
  parts = [options.transformation()]
  if options.weight_decay:
    decay = optax.add_decayed_weights(options.weight_decay, _mask_of_decay)
    decoupled = isinstance(options, AdamW)
    parts = [*parts, decay] if decoupled else [decay, *parts]
  if options.clip_norm:
    parts = [optax.clip_by_global_norm(options.clip_norm), *parts]
  rate = make_schedule(options, total_steps)
  parts.append(optax.scale_by_learning_rate(rate))
  if any(multiple != 1 for multiple in jax.tree.leaves(multipliers)):
    parts.append(_scale_by(multipliers))
  return optax.chain(*parts)


def make_schedule(
  options: OptimizerOptions, total_steps: int
) -> float | optax.Schedule:
  """Returns the rate, or the function from a step to its rate."""
  rate, warmup = options.learning_rate, options.warmup_steps
  if options.schedule == 'cosine':
    schedule = optax.cosine_decay_schedule(rate, max(total_steps - warmup, 1))
  elif options.schedule == 'dann':
    length = max(total_steps - warmup, 1)
    schedule = lambda step: rate * (1 + 10 * step / length) ** -0.75  # noqa: E731
  elif not warmup:
    return rate
  else:
    schedule = optax.constant_schedule(rate)
  if not warmup:
    return schedule
  rising = optax.linear_schedule(0.0, rate, warmup)
  return optax.join_schedules([rising, schedule], [warmup])


def _mask_of_decay(params: Any) -> Any:
  return {
    name: jax.tree.map(lambda _: name != _BETA, tree)  # noqa: B023
    for name, tree in params.items()
  }


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
      f'config.optimizer.rate_multipliers = {patterns!r} must be pairs of a '
      "pattern and a finite number, such as (('^beta$', 0.1), ('.*', 1.0))."
    )

  def find(path: tuple[Any, ...], _: Any) -> float:
    name = jax.tree_util.keystr(path, simple=True, separator='/')
    for pattern, multiple in patterns:
      if _found(pattern, name):
        return multiple
    raise UserError(
      f'config.optimizer.rate_multipliers: no pattern of {patterns} covers '
      f"'{name}'."
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
      f"config.optimizer.rate_multipliers: '{pattern}' is not a regular "
      f'expression: {error}.'
    ) from error


def _scale_by(multipliers: Any) -> optax.GradientTransformation:
  def update(updates: Any, params: Any = None) -> Any:
    del params
    return jax.tree.map(lambda u, m: u * m, updates, multipliers)

  return optax.stateless(update)
