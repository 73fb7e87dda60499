"""DANN on all sources (Ganin & Lempitsky 2015), every source weighing alike."""

import jax

from moda_jax.objectives import method


class DannMS(method.Method):
  """mean_j class_j + μ_d (mean_j source_j + target), reversed at the input.

  With one source this is DANN itself.
  """

  parts = ('extractor', 'classifier', 'discriminator')

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
    (source, target), metrics, state = self.domain_terms(params, state, z)
    discriminator = source.mean() + target
    loss = task.class_losses.mean() + self.config.mu_d * discriminator
    metrics |= task.metrics | {'discriminator': discriminator}
    return loss, (metrics, state)
