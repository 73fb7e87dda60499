"""CDAN's alignment (Long et al. 2018): a discriminator given the classes."""

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
from moda_jax.objectives.formulas import cdan, terms
from moda_jax.objectives.forward import Forward, Params, State
from moda_jax.objectives.method import AdversarialOptions
from moda_jax.objectives.parts import Aligned, Alignment
from moda_jax.objectives.reversal import reverse_gradient

_STATE = 'random_maps'


class Cdan(Alignment):
  """μ_d (source_j by weight + target), one discriminator of z ⊗ ŷ, reversed.

  z is pooled over space; large products are mapped at random, see
  `moda_jax.objectives.formulas.cdan`. μ_d is the same from the first step to
  the last, as in `dann`. The paper multiplies it by (1 − e^−10p) / (1 + e^−10p)
  instead, p being the share of training that is over, with a weight of 1 at
  the end; `mada` has that ramp.
  """

  Options = AdversarialOptions
  paper = 'Long et al. 2018'
  target_views = ('weak',)
  classified_views = ('weak',)
  has_key = True
  metric = names.DISCRIMINATOR

  def init(
    self, rng: jax.Array, params: Params, state: State, x: jax.Array
  ) -> tuple[Params, State]:
    """See the base class."""
    z = pooled(self.method.extract(params, state, x))
    logits = self.method.shape_of_logits(params, state, x)
    maps_rng, rng = jax.random.split(rng)
    maps = cdan.draw_maps(maps_rng, logits.shape[-1], z.shape[-1])
    pairs = cdan.condition(
      features=z, logits=jnp.zeros(logits.shape), maps=maps
    )
    variables = self._discriminator.init(rng, pairs)
    own_state = {} if maps is None else {_STATE: maps}
    return {'discriminator': variables['params']}, own_state

  def __call__(self, forward: Forward) -> Aligned:
    """See the base class."""
    features, answers = forward.features, forward.answers
    z = jnp.concatenate([features['source'], features['weak'][None]])
    pairs = cdan.condition(
      features=pooled(z, batch_axes=2),
      logits=jnp.concatenate([answers.source, answers.target['weak'][None]]),
      maps=forward.state.get(_STATE),
    )
    logits: Any = self._discriminator.apply(
      {'params': forward.params['discriminator']}, reverse_gradient(pairs)
    )
    source, target = self.method.across_devices(
      (
        terms.domain_losses(logits=logits[:-1], domain=terms.SOURCE),
        terms.domain_losses(logits=logits[-1], domain=terms.TARGET),
      )
    )
    forward.log_by_source(names.DISCRIMINATOR, source)
    forward.log(f'{names.DISCRIMINATOR}/target', target)
    return self.aligned(self.options.mu_d, game=source, shared=target)

  @property
  def _discriminator(self) -> SmallDiscriminator:
    return SmallDiscriminator(scaled(HIDDEN, self.method.networks.width))
