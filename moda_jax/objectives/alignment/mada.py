"""MADA's alignment (Pei et al. 2018): one discriminator per class."""

from typing import Any

import jax
import jax.numpy as jnp

from moda_jax.models.layers import scaled
from moda_jax.models.networks import pooled
from moda_jax.objectives import metrics as names
from moda_jax.objectives.alignment.small_discriminator import (
  HIDDEN,
  SmallDiscriminator,
)
from moda_jax.objectives.formulas import terms
from moda_jax.objectives.forward import Forward, Params, State
from moda_jax.objectives.parts import Aligned, Alignment
from moda_jax.objectives.reversal import reverse_gradient


class Mada(Alignment):
  """(λ/n) Σ_k Σ_x loss of D_k on ŷ_k(x) · z(x), one D_k per class, reversed.

  n counts all examples of the mini-batch, z is pooled over space, and no
  gradient flows through the predicted probabilities ŷ that weight it. λ grows
  from 0 to 1 with training as in the paper; μ_d and the weights of the sources
  play no part. The paper has one source; several are merged here.
  """

  paper = 'Pei et al. 2018'
  target_views = ('weak',)
  classified_views = ('weak',)
  has_key = True
  depends_on_length = True  # through λ
  metric = names.DISCRIMINATOR

  def init(
    self, rng: jax.Array, params: Params, state: State, x: jax.Array
  ) -> tuple[Params, State]:
    """See the base class."""
    z = self.method.extract(params, state, x)
    logits = self.method.shape_of_logits(params, state, x)
    keys = jax.random.split(rng, logits.shape[-1])
    heads = jax.vmap(self._discriminator.init, (0, None))(keys, pooled(z))
    return {'discriminator': heads['params']}, {}

  def __call__(self, forward: Forward) -> Aligned:
    """See the base class."""
    features, answers = forward.features, forward.answers
    # [M + 1, B, …]
    z = jnp.concatenate([features['source'], features['weak'][None]])
    logits = jnp.concatenate([answers.source, answers.target['weak'][None]])
    losses = self.method.across_devices(
      self._domain_losses(forward.params, z, jax.nn.softmax(logits))
    )
    strength = _strength(forward.step / self.method.total_steps)
    forward.log_by_source(names.DISCRIMINATOR, losses[:-1])
    forward.log(f'{names.DISCRIMINATOR}/target', losses[-1])
    forward.log(names.STRENGTH, strength)
    return self.aligned(strength, shared=losses.mean())

  @property
  def _discriminator(self) -> SmallDiscriminator:
    return SmallDiscriminator(scaled(HIDDEN, self.method.networks.width))

  def _domain_losses(
    self, params: Params, z: jax.Array, probabilities: jax.Array
  ) -> jax.Array:
    """Returns discriminators' losses over all classes, by domain `[M + 1]`."""
    weights = jax.lax.stop_gradient(probabilities)  # [M + 1, B, K]

    def loss_of_class(params: Params, weight: jax.Array) -> jax.Array:
      x = reverse_gradient(weight[..., None] * pooled(z, batch_axes=2))
      logits: Any = self._discriminator.apply({'params': params}, x)
      source = terms.domain_losses(logits=logits[:-1], domain=terms.SOURCE)
      target = terms.domain_losses(logits=logits[-1:], domain=terms.TARGET)
      return jnp.concatenate([source, target])

    losses = jax.vmap(loss_of_class, (0, -1))(params['discriminator'], weights)
    return losses.sum(axis=0)


def _strength(progress: jax.Array) -> jax.Array:
  """Returns λ at a progress in [0, 1]: from 0, steeply, to 1."""
  return 2 / (1 + jnp.exp(-10 * progress)) - 1
