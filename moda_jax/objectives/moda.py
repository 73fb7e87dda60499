"""MODA and MODA-FM: a mixture of sources whose weights are learned."""

import dataclasses
from typing import ClassVar

import jax

from moda_jax.data.spec import BatchSpec
from moda_jax.objectives import metrics as names
from moda_jax.objectives import source_weights, terms
from moda_jax.objectives.forward import Forward, Params, State
from moda_jax.objectives.method import (
  AdversarialOptions,
  ConsistencyOptions,
  Method,
)
from moda_jax.objectives.reversal import reverse_gradient

_COLLAPSED = 0.98


@dataclasses.dataclass(frozen=True)
class ModaOptions(source_weights.SoftmaxOptions, AdversarialOptions):
  """Options of MODA."""


@dataclasses.dataclass(frozen=True)
class ModaFMOptions(ModaOptions, ConsistencyOptions):
  """Options of MODA-FM."""


class Moda(Method):
  """Σ α_j class_j − μ_d · discriminator loss + μ_s ‖α‖², α = softmax(β).

  The discriminator maximises, everything else minimises. One backward pass
  does both: the discriminator loss is added, and its gradient is reversed at
  the discriminator's input and at the α that multiplies it.
  """

  Options: ClassVar[type] = ModaOptions
  parts = ('extractor', 'classifier', 'discriminator')
  weights: ClassVar[type[source_weights.Softmax]] = source_weights.Softmax

  @classmethod
  def has_beta(cls) -> bool:
    """See the base class."""
    return cls.weights.has_beta

  def init(self, rng: jax.Array, x: jax.Array) -> tuple[Params, State]:
    """See the base class; β starts uniform in [0, 1]."""
    rng, beta_rng = jax.random.split(rng)
    params, state = super().init(rng, x)
    params |= self._weights.init_params(beta_rng)
    return params, state | self._weights.init_state()

  def loss(self, forward: Forward) -> jax.Array:
    """See the base class."""
    mu_d = self.options.mu_d
    class_losses = forward.class_losses  # [M]
    source, target = forward.domain_losses  # [M], []
    alpha = self._weights(forward, class_losses - mu_d * source)
    discriminator = reverse_gradient(alpha) @ source + target
    sparsity = terms.sparsity(alpha=alpha)
    forward.log(names.DISCRIMINATOR, discriminator)
    forward.log(names.SPARSITY, sparsity)
    forward.log_by_source(names.ALPHA, alpha)
    forward.log(names.EFFECTIVE_SOURCES, 1 / sparsity)
    return (
      alpha @ class_losses
      + mu_d * discriminator
      + self._weights.sparsity_weight(class_losses) * sparsity
    )

  @property
  def _weights(self) -> source_weights.Softmax:
    return self.weights(self.options, len(self.sources))

  @property
  def curves(self) -> dict[str, str]:
    """See the base class."""
    return {'source weight α': names.ALPHA}

  def describe_progress(self, metrics: dict[str, float]) -> list[str]:
    """See the base class."""
    alpha = names.select(metrics, names.ALPHA)
    shown = 'α ' + ' '.join(f'{k} {v:.2f}' for k, v in alpha.items())
    return [*super().describe_progress(metrics), shown]

  def find_trouble(self, metrics: dict[str, float]) -> str:
    """See the base class; warns of weights that have collapsed."""
    alpha = names.select(metrics, names.ALPHA)
    if len(alpha) < 2 or max(alpha.values()) <= _COLLAPSED:
      return ''
    name = max(alpha, key=alpha.__getitem__)
    return (
      f'The source weights have collapsed: α of {name} is {alpha[name]:.3f}, '
      'and the other sources are hardly learned from. Remedies: a smaller rate '
      'for β (optimizer.beta_rate), equal weights for the first steps '
      '(objective.alpha_hold), a larger objective.mu_s, or '
      'method=moda_fm_floored.'
    )


class ModaFM(Moda):
  """MODA's objective + μ_c · consistency."""

  Options = ModaFMOptions
  batch_spec = BatchSpec(target_views=('weak', 'strong'))

  def loss(self, forward: Forward) -> jax.Array:
    """See the base class."""
    return super().loss(forward) + self.options.mu_c * forward.consistency
