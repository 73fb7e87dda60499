"""MDAN's alignment (Zhao et al. 2018): one discriminator per source."""

import jax.numpy as jnp

from moda_jax.objectives import metrics as names
from moda_jax.objectives.formulas import terms
from moda_jax.objectives.forward import Forward
from moda_jax.objectives.method import AdversarialOptions
from moda_jax.objectives.parts import Aligned, Alignment
from moda_jax.objectives.reversal import reverse_gradient


class Mdan(Alignment):
  """μ_d (source_j + target_j) by weight, one discriminator per source."""

  Options = AdversarialOptions
  paper = 'Zhao et al. 2018'
  target_views = ('weak',)
  networks = ('discriminator',)
  metric = names.DISCRIMINATOR

  @property
  def heads(self) -> dict[str, int]:
    """One discriminator per source."""
    return {'discriminator': self.count}

  def __call__(self, forward: Forward) -> Aligned:
    """See the base class."""
    z = forward.features
    target = jnp.broadcast_to(z['weak'], z['source'].shape)
    pairs = jnp.stack([z['source'], target], axis=1)  # [M, 2, B, …]
    logits = forward.apply('discriminator', reverse_gradient(pairs))
    source, target = self.method.across_devices(
      (
        terms.domain_losses(logits=logits[:, 0], domain=terms.SOURCE),
        terms.domain_losses(logits=logits[:, 1], domain=terms.TARGET),
      )
    )
    forward.log_by_source(names.DISCRIMINATOR, source)
    forward.log_by_source(names.DISCRIMINATOR_TARGET, target)
    return self.aligned(self.options.mu_d, game=source + target)
