"""DAEL's experts (Zhou et al. 2021), which teach one another."""

import jax

from moda_jax.objectives import dael
from moda_jax.objectives import metrics as names
from moda_jax.objectives.forward import Answers, Forward
from moda_jax.objectives.predictors.experts import (
  Experts,
  answer_all,
  log_mean,
)


class Taught(Experts):
  """Experts with class_j + mean ‖mean of other experts' p − p_j‖² on source j.

  Each expert teaches the others on its own source; the mean of all predicts. In
  the paper the others see a strong view of it, which batches do not have.
  """

  paper = 'Zhou et al. 2021'

  def answer(self, forward: Forward) -> Answers:
    """See the base class; every expert is given everything."""
    answers = answer_all(self, forward)
    views = self.method.classified_views
    target = {view: log_mean(answers.experts[view]) for view in views}
    return answers._replace(target=target)

  def losses(self, forward: Forward) -> tuple[jax.Array, jax.Array]:
    """See the base class."""
    answers = forward.answers
    taught = self.method.across_devices(
      dael.expert_consistency(
        weak_logits=answers.source, strong_logits=answers.experts['source']
      )
    )
    forward.log_by_source(names.TAUGHT, taught)
    losses, rest = super().losses(forward)
    return losses + taught, rest
