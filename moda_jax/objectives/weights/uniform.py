"""Sources that all count the same."""

import jax
import jax.numpy as jnp

from moda_jax.objectives.forward import Forward
from moda_jax.objectives.parts import Weights


class Uniform(Weights):
  """α_j = 1/M: the mean of the sources' losses."""

  def combine(
    self, forward: Forward, losses: jax.Array, game: jax.Array
  ) -> tuple[jax.Array, jax.Array]:
    """See the base class."""
    del forward
    equal = jnp.full(self.count, 1 / self.count)
    return losses.mean() + game.mean(), equal


class Sum(Weights):
  """α_j = 1: the sum of the sources' losses."""

  def combine(
    self, forward: Forward, losses: jax.Array, game: jax.Array
  ) -> tuple[jax.Array, jax.Array]:
    """See the base class."""
    del forward
    return losses.sum() + game.sum(), jnp.ones(self.count)
