"""DANN on all sources (Ganin & Lempitsky 2015), all with equal weight."""

import jax

from moda_jax.objectives import metrics
from moda_jax.objectives.forward import Forward
from moda_jax.objectives.method import AdversarialOptions, Method


class DannMS(Method):
  """mean_j class_j + μ_d (mean_j source_j + target), reversed at the input.

  With one source this is DANN itself.
  """

  Options = AdversarialOptions
  parts = ('extractor', 'classifier', 'discriminator')

  def loss(self, forward: Forward) -> jax.Array:
    """See the base class."""
    class_losses = forward.class_losses
    source, target = forward.domain_losses
    discriminator = source.mean() + target
    forward.log(metrics.DISCRIMINATOR, discriminator)
    return class_losses.mean() + self.options.mu_d * discriminator
