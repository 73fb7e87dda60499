"""Source weights that are solved for, on a moving average of the losses.

For a given network the objective's best α solves

  min_α  h·α + μ_s ‖α‖²,   h_j = loss_j − game_j,

whose solution is one-hot as soon as one source leads by 2 μ_s. A source whose
weight is gone is hardly learned from and does not come back, so the ways here
and those of `learned` differ in how soon they follow h.
"""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from moda_jax.config import option
from moda_jax.objectives.forward import Forward
from moda_jax.objectives.weights.weighted import (
  Averaged,
  AverageOptions,
  HoldOptions,
  SparsityOptions,
  Weighted,
)

_SLOWER = 'a longer average of the losses (objective.alpha_decay)'


@dataclasses.dataclass(frozen=True)
class ProjectedOptions(AverageOptions, SparsityOptions):
  """Options of `Projected`, whose μ_s must not be 0."""

  mu_s: float = option(0.2, above=0)


@dataclasses.dataclass(frozen=True)
class DarnOptions(AverageOptions, HoldOptions):
  """Options of `Darn`.

  Attributes:
    darn_gamma: γ; weights are one-hot where a source leads by 1 / γ.
  """

  darn_gamma: float = option(0.5, above=0)


class _Projection(Weighted):
  """α for losses as they are."""

  has_key = True  # as `Softmax`, so that networks start alike

  def weigh(self, forward: Forward, losses: jax.Array) -> jax.Array:
    """See the base class."""
    del forward
    return self.solve(losses)

  def solve(self, losses: jax.Array) -> jax.Array:
    """Returns the best α for losses h `[M]`."""
    return project_on_simplex(-losses / (2 * self.options.mu_s))


class Projected(Averaged, _Projection):
  """α solves min h·α + μ_s ‖α‖²: −h / 2μ_s projected onto the simplex."""

  Options: ClassVar[type] = ProjectedOptions
  remedies = (_SLOWER, 'a larger objective.mu_s')


class Darn(Projected):
  """α solves min γ h·α + ‖α‖₂: α ∝ relu(ν − γh).

  It is one-hot only where a source leads by 1/γ.
  """

  Options = DarnOptions
  paper = 'Wen et al. 2020'
  remedies = (_SLOWER, 'a smaller objective.darn_gamma')

  def solve(self, losses: jax.Array) -> jax.Array:
    """See the base class."""
    return solve_darn(self.options.darn_gamma * losses)

  def sparsity_weight(self, losses: jax.Array) -> float:
    """See the base class; a constant α has no use for the term."""
    del losses
    return 0.0


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
