"""A target that adds nothing."""

import jax
import jax.numpy as jnp

from moda_jax.objectives.forward import Forward
from moda_jax.objectives.parts import TargetTerm


class NoTargetTerm(TargetTerm):
  """The target adds nothing of its own."""

  def __call__(self, forward: Forward) -> jax.Array:
    """See the base class."""
    del forward
    return jnp.zeros(())
