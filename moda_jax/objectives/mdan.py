"""MDAN (Zhao et al. 2018): one discriminator per source, the worst leads."""

import dataclasses

import jax
import jax.numpy as jnp

from moda_jax.config import option
from moda_jax.data.spec import BatchSpec
from moda_jax.objectives import metrics, terms
from moda_jax.objectives.forward import Forward
from moda_jax.objectives.method import (
  AdversarialOptions,
  ConsistencyOptions,
  Method,
)
from moda_jax.objectives.reversal import reverse_gradient


@dataclasses.dataclass(frozen=True)
class MdanOptions(AdversarialOptions):
  """Options of MDAN.

  Attributes:
    gamma: how sharp the smooth maximum is.
  """

  gamma: float = option(10.0, above=0)


@dataclasses.dataclass(frozen=True)
class MdanFMOptions(ConsistencyOptions, MdanOptions):
  """Options of MDAN with consistency."""


class MdanMax(Method):
  """max_j (class_j + μ_d (source_j + target_j)): MDAN's hard version."""

  Options = AdversarialOptions
  parts = ('extractor', 'classifier', 'discriminator')

  @property
  def heads(self) -> dict[str, int]:
    """One discriminator per source."""
    return {'discriminator': len(self.sources)}

  def loss(self, forward: Forward) -> jax.Array:
    """See the base class."""
    class_losses = forward.class_losses
    source, target = self._domain_losses(forward)
    forward.log_by_source(metrics.DISCRIMINATOR, source)
    forward.log_by_source(metrics.DISCRIMINATOR_TARGET, target)
    forward.log(metrics.DISCRIMINATOR, jnp.mean(source + target))
    return self.combine(class_losses + self.options.mu_d * (source + target))

  def combine(self, losses: jax.Array) -> jax.Array:
    """Returns the largest of the sources' losses `[M]`."""
    return losses.max()

  def _domain_losses(self, forward: Forward) -> tuple[jax.Array, jax.Array]:
    """Returns discriminators' losses on their source and the target, `[M]`."""
    z = forward.features
    target = jnp.broadcast_to(z['weak'], z['source'].shape)
    pairs = jnp.stack([z['source'], target], axis=1)  # [M, 2, B, …]
    logits = forward.apply('discriminator', reverse_gradient(pairs))
    losses = (
      terms.domain_losses(logits=logits[:, 0], domain=terms.SOURCE),
      terms.domain_losses(logits=logits[:, 1], domain=terms.TARGET),
    )
    return self.across_devices(losses)


class Mdan(MdanMax):
  """(1/γ) log Σ_j exp(γ (class_j + μ_d (source_j + target_j)))."""

  Options = MdanOptions

  def combine(self, losses: jax.Array) -> jax.Array:
    """Returns the smooth maximum of the sources' losses `[M]`."""
    gamma = self.options.gamma
    return jax.nn.logsumexp(gamma * losses) / gamma


class MdanFM(Mdan):
  """MDAN's objective + μ_c · consistency."""

  Options = MdanFMOptions
  batch_spec = BatchSpec(target_views=('weak', 'strong'))

  def loss(self, forward: Forward) -> jax.Array:
    """See the base class."""
    return super().loss(forward) + self.options.mu_c * forward.consistency
