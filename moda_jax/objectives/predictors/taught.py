"""DAEL's experts (Zhou et al. 2021), which teach one another."""

import jax
import jax.numpy as jnp

from moda_jax.objectives import metrics as names
from moda_jax.objectives.formulas import dael
from moda_jax.objectives.forward import Answers, Forward
from moda_jax.objectives.predictors.experts import Experts, log_mean


class Taught(Experts):
  """Experts with class_j + mean ‖mean of other experts' p − p_j‖² on source j.

  Each expert teaches the others on its own source, of which they see a strong
  view and it the weak one; the mean of all predicts.
  """

  paper = 'Zhou et al. 2021'
  source_strong = True

  def answer(self, forward: Forward) -> Answers:
    """See the base class; every expert is given every strong view.

    What `experts` has of 'source' is on its strong view.
    """
    z, views = forward.features, self.method.classified_views
    shown = [z['source_strong'], *(z[view][None] for view in views)]
    x = jnp.concatenate(shown)
    x = jnp.broadcast_to(x, (self.count, *x.shape))
    x = jnp.concatenate([z['source'][:, None], x], axis=1)
    logits = forward.apply('classifier', x)  # [M, 1 + M + views, B, C]
    first = 1 + self.count  # of the target's views
    experts = {view: logits[:, first + i] for i, view in enumerate(views)}
    target = {view: log_mean(answers) for view, answers in experts.items()}
    experts['source'] = logits[:, 1:first]
    return Answers(logits[:, 0], target, experts)

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
