"""MDAN (Zhao et al. 2018): a discriminator a source, the worst source leads."""

import jax
import jax.numpy as jnp

from moda_jax.objectives import method, terms
from moda_jax.objectives.reversal import reverse_gradient


class Mdan(method.Method):
  """(1/γ) log Σ_j exp(γ (class_j + μ_d (source_j + target_j)))."""

  parts = ('extractor', 'classifier', 'discriminator')

  @property
  def heads(self) -> dict[str, int]:
    """A discriminator a source."""
    return {'discriminator': len(self.sources)}

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
    (source, target), state = self._domain_losses(params, state, z)
    combined = self.combine(
      task.class_losses + self.config.mu_d * (source + target)
    )
    loss = combined + self.config.mu_c * task.consistency
    metrics = task.metrics | self.by_source('discriminator', source)
    metrics |= self.by_source('discriminator_target', target)
    metrics |= {'discriminator': jnp.mean(source + target)}
    return loss, (metrics, state)

  def combine(self, losses: jax.Array) -> jax.Array:
    """The smooth maximum of the sources' losses `[M]`."""
    gamma = self.config.gamma
    return jax.nn.logsumexp(gamma * losses) / gamma

  def _domain_losses(
    self, params: method.Params, state: method.State, z: dict[str, jax.Array]
  ) -> tuple[tuple[jax.Array, jax.Array], method.State]:
    """Each discriminator's loss on its source and on the target, `[M]` both."""
    target = jnp.broadcast_to(z['weak'], z['source'].shape)
    pairs = jnp.stack([z['source'], target], axis=1)  # [M, 2, B, …]
    logits, state = self.apply(
      'discriminator', params, state, reverse_gradient(pairs), train=True
    )
    losses = (
      terms.domain_losses(logits=logits[:, 0], domain=terms.SOURCE),
      terms.domain_losses(logits=logits[:, 1], domain=terms.TARGET),
    )
    return self.across_devices(losses), state


class MdanMax(Mdan):
  """MDAN's hard version: the maximum over the sources."""

  def combine(self, losses: jax.Array) -> jax.Array:
    """The largest of the sources' losses `[M]`."""
    return losses.max()


class MdanFM(Mdan):
  """MDAN with FixMatch consistency on the target."""

  views = ('weak', 'strong')
