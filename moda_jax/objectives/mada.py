"""MADA (Pei et al. 2018): one discriminator per class."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from moda_jax.models.layers import scaled
from moda_jax.models.networks import pooled
from moda_jax.objectives import metrics as names
from moda_jax.objectives import terms
from moda_jax.objectives.forward import Forward, Params, State
from moda_jax.objectives.method import Method
from moda_jax.objectives.reversal import reverse_gradient

_HIDDEN = 1024


class ClassDiscriminator(nn.Module):
  """A small network, since there is one per class."""

  hidden: int

  @nn.compact
  def __call__(self, x: jax.Array) -> jax.Array:
    """Maps features `[…, F]` to the logits of source and target."""
    for _ in range(2):
      x = nn.relu(nn.Dense(self.hidden)(x))
    return nn.Dense(2)(x)


class Mada(Method):
  """mean class loss − (λ/n) Σ_k Σ_x loss of D_k on ŷ_k(x) · z(x).

  n counts all examples of the mini-batch, z is pooled over space, and no
  gradient flows through the probabilities ŷ that weight it. λ grows from 0 to
  1 with training as in the paper; μ_d plays no part. The paper has one source;
  several are merged here.
  """

  depends_on_length = True  # through λ

  def init(self, rng: jax.Array, x: jax.Array) -> tuple[Params, State]:
    """See the base class."""
    rng, head_rng = jax.random.split(rng)
    params, state = super().init(rng, x)
    z, state = self.apply('extractor', params, state, x, train=False)
    logits, state = self.apply('classifier', params, state, z, train=False)
    keys = jax.random.split(head_rng, logits.shape[-1])
    heads = jax.vmap(self._discriminator.init, (0, None))(keys, pooled(z))
    params['discriminator'] = heads['params']
    return params, state

  def loss(self, forward: Forward) -> jax.Array:
    """See the base class."""
    features = forward.features
    # [M + 1, B, …]
    z = jnp.concatenate([features['source'], features['weak'][None]])
    logits = forward.apply('classifier', z)
    labels = forward.batch['source']['label']
    class_losses, domain_losses = self.across_devices(
      (
        terms.class_losses(logits=logits[:-1], labels=labels),
        self._domain_losses(forward.params, z, jax.nn.softmax(logits)),
      )
    )
    discriminator = domain_losses.mean()
    strength = _strength(forward.step / self.total_steps)
    forward.log_by_source(names.CLASS, class_losses)
    forward.log_by_source(names.DISCRIMINATOR, domain_losses[:-1])
    forward.metrics |= {
      f'{names.DISCRIMINATOR}/target': domain_losses[-1],
      names.DISCRIMINATOR: discriminator,
      names.STRENGTH: strength,
    }
    return class_losses.mean() + strength * discriminator

  @property
  def _discriminator(self) -> ClassDiscriminator:
    return ClassDiscriminator(scaled(_HIDDEN, self.networks.width))

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
