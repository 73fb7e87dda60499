"""MODA: adaptation from a mixture of sources whose weights are learned."""

from typing import ClassVar

import jax

from moda_jax.objectives import method, source_weights, terms
from moda_jax.objectives.reversal import reverse_gradient


class Moda(method.Method):
  """Σ α_j class_j − μ_d · discriminator loss + μ_s ‖α‖², α = softmax(β).

  The discriminator maximises, everything else minimises. One backward pass
  does both: the discriminator loss is added, and its gradient is reversed at
  the discriminator's input and at the α that multiplies it.
  """

  parts = ('extractor', 'classifier', 'discriminator')
  weights: ClassVar[type[source_weights.Softmax]] = source_weights.Softmax

  def init(
    self, rng: jax.Array, x: jax.Array
  ) -> tuple[method.Params, method.State]:
    """See the base class; β starts uniform in [0, 1]."""
    rng, beta_rng = jax.random.split(rng)
    params, state = super().init(rng, x)
    params |= self._weights.init_params(beta_rng)
    kept = self._weights.init_state()
    return params, state | ({'weights': kept} if kept else {})

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
    config = self.config
    harm = task.class_losses - config.mu_d * source
    alpha, kept = self._weights(params, state.get('weights', {}), harm, step)
    state = state | ({'weights': kept} if kept else {})
    discriminator = reverse_gradient(alpha) @ source + target
    sparsity = terms.sparsity(alpha=alpha)
    loss = (
      alpha @ task.class_losses
      + config.mu_c * task.consistency
      + config.mu_d * discriminator
      + self._weights.sparsity_weight(task.class_losses) * sparsity
    )
    metrics |= task.metrics | self.by_source('alpha', alpha)
    metrics |= {'discriminator': discriminator, 'sparsity': sparsity}
    metrics['effective_sources'] = 1 / sparsity
    return loss, (metrics, state)

  @property
  def _weights(self) -> source_weights.Softmax:
    return self.weights(self.config, len(self.sources))
