"""FixMatch (Sohn et al. 2020): strong views towards weak views' classes."""

import jax

from moda_jax.objectives import metrics as names
from moda_jax.objectives.formulas import terms
from moda_jax.objectives.forward import Forward
from moda_jax.objectives.method import Confident, ConsistencyOptions
from moda_jax.objectives.parts import TargetTerm


class FixMatch(TargetTerm):
  """μ_c · mean of 1[max p(weak) > τ] H(argmax p(weak), p(strong))."""

  Options = ConsistencyOptions
  paper = 'Sohn et al. 2020'
  target_views = ('weak', 'strong')
  classified_views = ('weak', 'strong')
  shown = (names.CONSISTENCY,)
  confident = Confident(
    names.CONFIDENT,
    'tau',
    'τ',
    'Confident target samples',
    'Those that the consistency term is trained on.',
    is_plain=True,
  )

  def __call__(self, forward: Forward) -> jax.Array:
    """See the base class."""
    target = forward.answers.target
    loss, confident = self.method.across_devices(
      terms.consistency(
        weak_logits=target['weak'],
        strong_logits=target['strong'],
        threshold=self.options.tau,
      )
    )
    forward.log(names.CONSISTENCY, loss)
    forward.log(names.CONFIDENT, confident)
    return self.options.mu_c * loss
