"""Domains that are not aligned."""

from moda_jax.objectives.forward import Forward
from moda_jax.objectives.parts import Aligned, Alignment


class NoAlignment(Alignment):
  """Nothing brings the domains together."""

  def __call__(self, forward: Forward) -> Aligned:
    """See the base class."""
    del forward
    return self.aligned(0.0)
