"""Source-only, the lower bound, and FM, which adds FixMatch to it."""

import jax

from moda_jax.data.spec import BatchSpec
from moda_jax.objectives.forward import Forward
from moda_jax.objectives.method import ConsistencyOptions, Method


class SourceOnly(Method):
  """Mean class loss over the sources, as if these were the target."""

  batch_spec = BatchSpec(target_views=())

  def loss(self, forward: Forward) -> jax.Array:
    """See the base class."""
    return forward.class_losses.mean()


class FM(SourceOnly):
  """mean_j class_j + μ_c · consistency: FixMatch (Sohn et al. 2020) alone."""

  Options = ConsistencyOptions
  batch_spec = BatchSpec(target_views=('weak', 'strong'))

  def loss(self, forward: Forward) -> jax.Array:
    """See the base class."""
    return super().loss(forward) + self.options.mu_c * forward.consistency
