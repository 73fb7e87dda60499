"""Source-only: the lower bound, trained on the sources as if on the target."""

import jax

from moda_jax.objectives import method


class SourceOnly(method.Method):
  """Mean class loss over the sources; with a strong view, FixMatch too."""

  views = ()

  def loss(
    self,
    params: method.Params,
    state: method.State,
    batch: method.Batch,
    rng: jax.Array,
    step: jax.Array,
  ) -> tuple[jax.Array, tuple[method.Metrics, method.State]]:
    """See the base class."""
    z, state = self.extract(params, state, batch, rng)
    task, state = self.task_terms(params, state, z, batch)
    loss = task.class_losses.mean() + self.config.mu_c * task.consistency
    return loss, (task.metrics, state)
