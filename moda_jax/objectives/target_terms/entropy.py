"""Sure, and for `Information` varied, predictions on the target."""

import dataclasses
from typing import ClassVar

import jax

from moda_jax.config import option
from moda_jax.objectives import metrics as names
from moda_jax.objectives.formulas import entropies
from moda_jax.objectives.forward import Forward
from moda_jax.objectives.parts import TargetTerm


@dataclasses.dataclass(frozen=True)
class EntropyOptions:
  """Options of `Entropy`.

  Attributes:
    entropy_weight: of the term.
  """

  entropy_weight: float = option(0.1, least=0)


@dataclasses.dataclass(frozen=True)
class InformationOptions:
  """Options of `Information`.

  Attributes:
    information_weight: of the term.
  """

  information_weight: float = option(1.0, least=0)


class Entropy(TargetTerm):
  """μ · mean H(p): entropy minimisation."""

  Options: ClassVar[type] = EntropyOptions
  paper = 'Grandvalet & Bengio 2005'
  target_views = ('weak',)
  classified_views = ('weak',)
  shown: ClassVar[tuple[str, ...]] = (names.TARGET_ENTROPY,)

  def __call__(self, forward: Forward) -> jax.Array:
    """See the base class."""
    return self.options.entropy_weight * self._mean_entropy(forward)

  def _mean_entropy(self, forward: Forward) -> jax.Array:
    logits = forward.answers.target['weak']
    mean = self.method.across_devices(entropies.entropies(logits=logits).mean())
    forward.log(names.TARGET_ENTROPY, mean)
    return mean


class Information(Entropy):
  """μ · (mean H(p) − H(mean p)): information maximisation."""

  Options = InformationOptions
  paper = 'Liang et al. 2020'
  shown = (names.TARGET_ENTROPY, names.VARIETY)

  def __call__(self, forward: Forward) -> jax.Array:
    """See the base class."""
    p = jax.nn.softmax(forward.answers.target['weak'])
    mean = self.method.across_devices(p.mean(axis=0))
    variety = entropies.entropy_of(probabilities=mean)
    forward.log(names.VARIETY, variety)
    loss = self._mean_entropy(forward) - variety
    return self.options.information_weight * loss
