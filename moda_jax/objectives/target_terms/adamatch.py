"""AdaMatch (Berthelot et al. 2022): consistency aligned with the sources."""

import dataclasses

import jax

from moda_jax.config import option
from moda_jax.objectives import metrics as names
from moda_jax.objectives.formulas import adamatch
from moda_jax.objectives.forward import Forward
from moda_jax.objectives.method import Confident
from moda_jax.objectives.parts import TargetTerm


@dataclasses.dataclass(frozen=True)
class AdaMatchOptions:
  """Options of `AdaMatch`.

  Attributes:
    adamatch_weight: μ, of the term at the end of its ramp.
    adamatch_tau: τ; target samples are trained on whose confidence is at least
      this share of the mean confidence on the sources.
  """

  adamatch_weight: float = option(1.0, least=0)
  adamatch_tau: float = option(0.9, least=0, most=1)


class AdaMatch(TargetTerm):
  """μ · mean of 1[max q ≥ τ c] H(q, p(strong)), q ∝ p(weak) E[p_S]/E[p_T].

  c is the mean confidence on the sources; μ is ramped up from 0 in the first
  half of training.
  """

  Options = AdaMatchOptions
  paper = 'Berthelot et al. 2022'
  target_views = ('weak', 'strong')
  classified_views = ('weak', 'strong')
  depends_on_length = True  # through μ(t)
  shown = (names.ADAMATCH,)
  confident = Confident(
    names.ADAMATCH_CONFIDENT,
    'adamatch_tau',
    'τ c',
    'Confident target samples (AdaMatch)',
    'c is the mean confidence on the sources.',
  )

  def __call__(self, forward: Forward) -> jax.Array:
    """See the base class."""
    answers, options = forward.answers, self.options
    weak, strong = answers.target['weak'], answers.target['strong']
    means = self.method.across_devices(
      adamatch.batch_means(source_logits=answers.source, weak_logits=weak)
    )
    loss, kept = self.method.across_devices(
      adamatch.aligned_consistency(
        weak_logits=weak,
        strong_logits=strong,
        means=means,
        threshold=options.adamatch_tau,
      )
    )
    forward.log(names.ADAMATCH, loss)
    forward.log(names.ADAMATCH_CONFIDENT, kept)
    ramp = adamatch.ramp(forward.step / self.method.total_steps)
    return options.adamatch_weight * ramp * loss
