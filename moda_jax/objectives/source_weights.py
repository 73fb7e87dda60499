"""Source weights α on the simplex: learned as β, or solved for.

For a given network the objective's best α solves

  min_α  h·α + μ_s ‖α‖²,   h_j = class_j − μ_d · source_j,

whose solution is one-hot as soon as one source leads by 2 μ_s. A source whose
weight is gone is hardly learned from and does not come back, so the ways below
differ in how soon they follow h. `alpha_hold` keeps α equal for the first steps
of any of them.
"""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from moda_jax.config import option
from moda_jax.objectives.forward import Forward

_STATE = 'source_losses'  # the moving average, in the method's state


@dataclasses.dataclass(frozen=True)
class SoftmaxOptions:
  """Options of learned weights.

  Attributes:
    mu_s: the weight of ‖α‖².
    alpha_hold: how many steps α is held equal for.
  """

  mu_s: float = option(0.2, least=0)
  alpha_hold: int = option(0, least=0)


@dataclasses.dataclass(frozen=True)
class FlooredOptions(SoftmaxOptions):
  """Options of `Floored`.

  Attributes:
    alpha_floor: ε, the share that is given out equally.
  """

  alpha_floor: float = option(0.3, least=0, most=1)


@dataclasses.dataclass(frozen=True)
class ProjectedOptions(SoftmaxOptions):
  """Options of `Projected`.

  Attributes:
    alpha_decay: what the moving average of the losses keeps at a step.
  """

  mu_s: float = option(0.2, above=0)
  alpha_decay: float = option(0.99, least=0, below=1)


@dataclasses.dataclass(frozen=True)
class DarnOptions(ProjectedOptions):
  """Options of `Darn`.

  Attributes:
    darn_gamma: γ; weights are one-hot where a source leads by 1 / γ.
  """

  darn_gamma: float = option(0.5, above=0)


class Softmax:
  """α = softmax(β), with β a parameter like any other: the paper's way."""

  has_beta: ClassVar[bool] = True

  def __init__(self, options: Any, count: int):
    """Describes the weights of `count` sources; see the options above."""
    self.options = options
    self.count = count

  def init_params(self, rng: jax.Array) -> dict[str, jax.Array]:
    """Starts β uniform in [0, 1], or equal where α is held equal at first."""
    if self.options.alpha_hold:
      return {'beta': jnp.zeros(self.count)}
    return {'beta': jax.random.uniform(rng, (self.count,))}

  def init_state(self) -> dict[str, jax.Array]:
    """Returns what is kept between steps, beside parameters."""
    return {}

  def weigh(self, forward: Forward, losses: jax.Array) -> jax.Array:
    """Returns α `[M]` for the sources' losses h `[M]`."""
    del losses
    return jax.nn.softmax(forward.params['beta'])

  def sparsity_weight(self, class_losses: jax.Array) -> jax.Array | float:
    """Returns what ‖α‖² is multiplied by: μ_s."""
    del class_losses
    return self.options.mu_s

  def __call__(self, forward: Forward, losses: jax.Array) -> jax.Array:
    """Returns `weigh`'s α, equal weights before step `alpha_hold`."""
    alpha = self.weigh(forward, jax.lax.stop_gradient(losses))
    if self.options.alpha_hold:
      equal = jnp.full_like(alpha, 1 / self.count)
      alpha = jnp.where(forward.step < self.options.alpha_hold, equal, alpha)
    return alpha


class Floored(Softmax):
  """α = (1 − ε) softmax(β) + ε / M: no source is ever dropped."""

  def weigh(self, forward: Forward, losses: jax.Array) -> jax.Array:
    """See the base class."""
    floor = self.options.alpha_floor
    return (1 - floor) * super().weigh(forward, losses) + floor / self.count


class Relative(Softmax):
  """α = softmax(β) with μ_s in units of the mean class loss.

  One-hot weights are then best only where the best source leads by 2 μ_s mean
  losses, however large these still are.
  """

  def sparsity_weight(self, class_losses: jax.Array) -> jax.Array:
    """See the base class."""
    return self.options.mu_s * jax.lax.stop_gradient(class_losses.mean())


class Projected(Softmax):
  """α solved for on a moving average of h: −h / 2μ_s onto the simplex."""

  has_beta = False

  def init_params(self, rng: jax.Array) -> dict[str, jax.Array]:
    """Returns no parameters: nothing is learned."""
    return {}

  def init_state(self) -> dict[str, jax.Array]:
    """See the base class; h starts at 0, which gives equal weights."""
    return {_STATE: jnp.zeros(self.count)}

  def weigh(self, forward: Forward, losses: jax.Array) -> jax.Array:
    """See the base class."""
    decay = self.options.alpha_decay
    average = decay * forward.state[_STATE] + (1 - decay) * losses
    forward.state = forward.state | {_STATE: average}
    return self.solve(average)

  def solve(self, losses: jax.Array) -> jax.Array:
    """Returns the best α for losses h `[M]`."""
    return project_on_simplex(-losses / (2 * self.options.mu_s))


class Darn(Projected):
  """α solved for as in DARN (Wen et al. 2020): min γ h·α + ‖α‖₂.

  α ∝ relu(ν − γh), one-hot only where a source leads by 1/γ.
  """

  def solve(self, losses: jax.Array) -> jax.Array:
    """See the base class."""
    return solve_darn(self.options.darn_gamma * losses)


def project_on_simplex(x: jax.Array) -> jax.Array:
  """Returns the point of the simplex nearest to `x` `[M]`."""
  descending = jnp.sort(x)[::-1]
  excess = (jnp.cumsum(descending) - 1) / jnp.arange(1, x.size + 1)
  active = jnp.sum(descending > excess)  # a prefix, never empty
  return jnp.maximum(x - excess[active - 1], 0)


def solve_darn(g: jax.Array) -> jax.Array:
  """Returns argmin over the simplex of g·α + ‖α‖₂, for `g` `[M]`.

  The minimum is at α ∝ relu(ν − g) with ‖relu(ν − g)‖₂ = 1: ν solves a
  quadratic for each number of active sources, of which one is consistent.
  """
  ascending = jnp.sort(g - g.min())
  count = jnp.arange(1, g.size + 1)
  total, squares = jnp.cumsum(ascending), jnp.cumsum(ascending**2)
  root = jnp.sqrt(jnp.maximum(total**2 - count * (squares - 1), 0))
  nu = (total + root) / count
  active = jnp.sum(nu > ascending)  # a prefix, never empty
  alpha = jnp.maximum(nu[active - 1] - (g - g.min()), 0)
  return alpha / alpha.sum()
