"""Source weights α on the simplex: learned as β, or solved for.

For a given network the objective's best α solves

  min_α  h·α + μ_s ‖α‖²,   h_j = class_j − μ_d · source_j,

whose solution is one-hot as soon as one source leads by 2 μ_s. A source whose
weight is gone is hardly learned from and does not come back, so the ways below
differ in how soon they follow h. `alpha_hold` keeps α equal for the first steps
of any of them.
"""

from typing import Any

import jax
import jax.numpy as jnp
import ml_collections

State = dict[str, Any]


class Softmax:
  """α = softmax(β), with β a parameter like any other: the paper's way."""

  def __init__(self, config: ml_collections.ConfigDict, count: int):
    """Describes the weights.

    Args:
      config: holds `alpha_hold`, and what the subclasses name.
      count: the number of sources.
    """
    self.config = config
    self.count = count

  def init_params(self, rng: jax.Array) -> dict[str, jax.Array]:
    """Starts β uniform in [0, 1], or equal where α is held equal at first."""
    if self.config.alpha_hold:
      return {'beta': jnp.zeros(self.count)}
    return {'beta': jax.random.uniform(rng, (self.count,))}

  def init_state(self) -> State:
    """Returns what is kept between steps, beside parameters."""
    return {}

  def weigh(
    self, params: dict[str, Any], state: State, losses: jax.Array
  ) -> tuple[jax.Array, State]:
    """Returns α `[M]` for the sources' losses h `[M]`, and the new state."""
    del losses
    return jax.nn.softmax(params['beta']), state

  def sparsity_weight(self, class_losses: jax.Array) -> jax.Array | float:
    """Returns what ‖α‖² is multiplied by: μ_s."""
    del class_losses
    return self.config.mu_s

  def __call__(
    self,
    params: dict[str, Any],
    state: State,
    losses: jax.Array,
    step: jax.Array,
  ) -> tuple[jax.Array, State]:
    """Returns `weigh`'s α, equal weights before step `alpha_hold`."""
    alpha, state = self.weigh(params, state, jax.lax.stop_gradient(losses))
    if self.config.alpha_hold:
      equal = jnp.full_like(alpha, 1 / self.count)
      alpha = jnp.where(step < self.config.alpha_hold, equal, alpha)
    return alpha, state


class Floored(Softmax):
  """α = (1 − ε) softmax(β) + ε / M: no source is ever left."""

  def weigh(
    self, params: dict[str, Any], state: State, losses: jax.Array
  ) -> tuple[jax.Array, State]:
    """See the base class."""
    alpha, state = super().weigh(params, state, losses)
    floor = self.config.alpha_floor
    return (1 - floor) * alpha + floor / self.count, state


class Relative(Softmax):
  """α = softmax(β) with μ_s in units of the mean class loss.

  One-hot weights are then best only where the best source leads by 2 μ_s mean
  losses, however large these still are.
  """

  def sparsity_weight(self, class_losses: jax.Array) -> jax.Array:
    """See the base class."""
    return self.config.mu_s * jax.lax.stop_gradient(class_losses.mean())


class Projected(Softmax):
  """α solved for on a moving average of h: −h / 2μ_s onto the simplex."""

  def init_params(self, rng: jax.Array) -> dict[str, jax.Array]:
    """Returns no parameters: nothing is learned."""
    return {}

  def init_state(self) -> State:
    """See the base class; h starts at 0, which gives equal weights."""
    return {'losses': jnp.zeros(self.count)}

  def weigh(
    self, params: dict[str, Any], state: State, losses: jax.Array
  ) -> tuple[jax.Array, State]:
    """See the base class."""
    decay = self.config.alpha_decay
    average = decay * state['losses'] + (1 - decay) * losses
    return self.solve(average), {'losses': average}

  def solve(self, losses: jax.Array) -> jax.Array:
    """Returns the best α for losses h `[M]`."""
    return project_on_simplex(-losses / (2 * self.config.mu_s))


class Darn(Projected):
  """α solved for as in DARN (Wen et al. 2020): min γ h·α + ‖α‖₂.

  α ∝ relu(ν − γh), one-hot only where a source leads by 1/γ.
  """

  def solve(self, losses: jax.Array) -> jax.Array:
    """See the base class."""
    return solve_darn(self.config.darn_gamma * losses)


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
