"""Supervised on the target: the upper bound, which uses target labels."""

import jax

from moda_jax.objectives import method, terms


class Supervised(method.Method):
  """Mean class loss on the labelled target; the sources are not used."""

  reads_sources = False
  reads_target_labels = True

  def loss(
    self,
    params: method.Params,
    state: method.State,
    batch: method.Batch,
    rng: jax.Array,
    step: jax.Array,
  ) -> tuple[jax.Array, tuple[method.Metrics, method.State]]:
    """See the base class."""
    target = batch['target']
    x = target['weak'][None]  # one group
    z, state = self.apply('extractor', params, state, x, train=True)
    logits, state = self.apply('classifier', params, state, z, train=True)
    loss = terms.class_losses(logits=logits, labels=target['label'][None])
    loss = self.across_devices(loss.mean())
    return loss, ({'class/target': loss}, state)
