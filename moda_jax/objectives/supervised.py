"""Supervised on the target: the upper bound, which uses target labels."""

import jax

from moda_jax.data.spec import BatchSpec
from moda_jax.objectives import metrics
from moda_jax.objectives.formulas import terms
from moda_jax.objectives.forward import Forward
from moda_jax.objectives.method import Method


class Supervised(Method):
  """Trained on target labels: the upper bound, and says so."""

  batch_spec = BatchSpec(sources=False, target_labels=True)

  def loss(self, forward: Forward) -> jax.Array:
    """See the base class."""
    target = forward.batch['target']
    z = forward.apply('extractor', target['weak'][None])  # one group
    logits = forward.apply('classifier', z)
    losses = terms.class_losses(logits=logits, labels=target['label'][None])
    loss = self.across_devices(losses.mean())
    forward.log(f'{metrics.CLASS}/target', loss)
    return loss
