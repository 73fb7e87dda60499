"""MCC (Jin et al. 2020): the target's classes are not confused."""

import dataclasses

import jax

from moda_jax.config import option
from moda_jax.objectives import metrics as names
from moda_jax.objectives.formulas import confusion
from moda_jax.objectives.forward import Forward
from moda_jax.objectives.parts import TargetTerm


@dataclasses.dataclass(frozen=True)
class MccOptions:
  """Options of `Mcc`.

  Attributes:
    mcc_weight: of the term.
    mcc_temperature: T, by which the logits are divided.
  """

  mcc_weight: float = option(1.0, least=0)
  mcc_temperature: float = option(2.5, above=0)


class Mcc(TargetTerm):
  """μ · mean share of PᵀWP off the diagonal, P = softmax(logits / T)."""

  Options = MccOptions
  paper = 'Jin et al. 2020'
  target_views = ('weak',)
  classified_views = ('weak',)
  shown = (names.CONFUSION,)

  def __call__(self, forward: Forward) -> jax.Array:
    """See the base class."""
    correlation = self.method.across_devices(
      confusion.class_correlation(
        logits=forward.answers.target['weak'],
        temperature=self.options.mcc_temperature,
      )
    )
    loss = confusion.confusion(correlation=correlation)
    forward.log(names.CONFUSION, loss)
    return self.options.mcc_weight * loss
