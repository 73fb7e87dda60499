"""DAEL's term (Zhou et al. 2021): all experts towards the surest one."""

import dataclasses

import jax

from moda_jax.config import option
from moda_jax.objectives import metrics as names
from moda_jax.objectives.formulas import dael
from moda_jax.objectives.forward import Forward
from moda_jax.objectives.method import Confident
from moda_jax.objectives.parts import TargetTerm


@dataclasses.dataclass(frozen=True)
class DaelOptions:
  """Options of `Dael`.

  Attributes:
    dael_weight: of the term.
    dael_tau: ε, how sure an expert must be to teach.
  """

  dael_weight: float = option(0.5, least=0)
  dael_tau: float = option(0.95, least=0, most=1)


class Dael(TargetTerm):
  """μ · mean of 1[max p_i(weak) ≥ ε] H(argmax p_i(weak), mean_j p_j(strong)).

  i is the expert that is surest of the example.
  """

  Options = DaelOptions
  paper = 'Zhou et al. 2021'
  target_views = ('weak', 'strong')
  classified_views = ('weak', 'strong')
  needs_experts = True
  shown = (names.DAEL,)
  confident = Confident(
    names.DAEL_CONFIDENT,
    'dael_tau',
    'ε',
    'Confident target samples (DAEL)',
    'Those of which one expert is sure enough to teach all.',
  )

  def __call__(self, forward: Forward) -> jax.Array:
    """See the base class."""
    experts = forward.answers.experts
    loss, kept = self.method.across_devices(
      dael.confident_expert(
        weak_logits=experts['weak'],
        strong_logits=experts['strong'],
        threshold=self.options.dael_tau,
      )
    )
    forward.log(names.DAEL, loss)
    forward.log(names.DAEL_CONFIDENT, kept)
    return self.options.dael_weight * loss
