"""DANN (Ganin & Lempitsky 2015): one discriminator of sources and target."""

import jax.numpy as jnp

from moda_jax.objectives import metrics as names
from moda_jax.objectives.formulas import terms
from moda_jax.objectives.forward import Forward
from moda_jax.objectives.method import AdversarialOptions
from moda_jax.objectives.parts import Aligned, Alignment
from moda_jax.objectives.reversal import reverse_gradient


class Dann(Alignment):
  """μ_d (source_j by weight + target), one discriminator, reversed."""

  Options = AdversarialOptions
  paper = 'Ganin & Lempitsky 2015'
  target_views = ('weak',)
  networks = ('discriminator',)
  metric = names.DISCRIMINATOR

  def __call__(self, forward: Forward) -> Aligned:
    """See the base class."""
    z = [forward.features['source'], forward.features['weak'][None]]
    x = reverse_gradient(jnp.concatenate(z))
    logits = forward.apply('discriminator', x)
    source, target = self.method.across_devices(
      (
        terms.domain_losses(logits=logits[:-1], domain=terms.SOURCE),
        terms.domain_losses(logits=logits[-1], domain=terms.TARGET),
      )
    )
    forward.log_by_source(names.DISCRIMINATOR, source)
    forward.log(f'{names.DISCRIMINATOR}/target', target)
    return self.aligned(self.options.mu_d, game=source, shared=target)
