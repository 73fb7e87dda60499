"""DAEL (Zhou et al. 2021): experts that teach one another, one per source."""

import dataclasses

import jax
import jax.numpy as jnp

from moda_jax.config import option
from moda_jax.objectives import metrics as names
from moda_jax.objectives.forward import Answers, Forward
from moda_jax.objectives.predictors.experts import Experts, log_mean

_LEAST = (
  1e-5  # added to probabilities in logarithms, as in the authors' program
)


@dataclasses.dataclass(frozen=True)
class DaelOptions:
  """Options of DAEL.

  Attributes:
    dael_weight: λ_u, of the target's term.
    dael_tau: ε; where an expert is as sure of a target sample, it teaches all.
  """

  dael_weight: float = option(0.5, least=0)
  dael_tau: float = option(0.95, least=0, most=1)


class Dael(Experts):
  """Experts that teach one another: class_j + mean_j L_cr,j + λ_u L_u.

  L_cr: of each source's strong view the mean of the other experts follows its
  own expert on the weak view, by squared distance. L_u: of the target's strong
  view the mean of all experts follows the class that the most confident one
  sees in the weak view. The mean of all experts predicts.
  """

  Options = DaelOptions
  paper = 'Zhou et al. 2021'
  target_views = ('weak', 'strong')
  classified_views = ('weak', 'strong')
  source_strong = True

  def answer(self, forward: Forward) -> Answers:
    """See the base class; all experts see all strong views and the target."""
    z, views = forward.features, self.method.classified_views
    target = [z[view][None] for view in views]
    shown = jnp.concatenate([z['source_strong'], *target])
    shown = jnp.broadcast_to(shown, (self.count, *shown.shape))
    x = jnp.concatenate([z['source'][:, None], shown], axis=1)
    logits = forward.apply('classifier', x)  # [M, 1 + M + views, B, C]
    experts = logits[:, 1:]
    by_view = {
      view: log_mean(experts[:, self.count + i]) for i, view in enumerate(views)
    }
    return Answers(logits[:, 0], by_view, experts)

  def losses(self, forward: Forward) -> tuple[jax.Array, jax.Array]:
    """See the base class."""
    own, _, experts = forward.answers
    weak, strong = (
      experts[:, self.count + self.method.classified_views.index(view)]
      for view in ('weak', 'strong')
    )
    consistency, (taught, confident) = self.method.across_devices(
      (
        expert_consistency(
          weak_logits=own, strong_logits=experts[:, : self.count]
        ),
        confident_expert(
          weak_logits=weak,
          strong_logits=strong,
          threshold=self.options.dael_tau,
        ),
      )
    )
    forward.log_by_source(names.EXPERTS_CONSISTENCY, consistency)
    forward.log(names.EXPERTS_TARGET, taught)
    forward.log(names.EXPERTS_CONFIDENT, confident)
    rest = consistency.mean() + self.options.dael_weight * taught
    return forward.class_losses, rest


def expert_consistency(
  *, weak_logits: jax.Array, strong_logits: jax.Array
) -> jax.Array:
  """Returns L_cr of each source: the other experts towards its own, `[M]`.

  It is the mean of ‖mean_{j≠i} p_j(strong) − p_i(weak)‖² over the examples of
  source i, without gradient through p_i(weak); 0 for a single source.

  Args:
    weak_logits: each expert's on the weak view of its own source, `[M, B, C]`.
    strong_logits: expert j's on the strong view of source i at `[j, i]`,
      `[M, M, B, C]`.
  """
  count = len(weak_logits)
  own = jax.lax.stop_gradient(jax.nn.softmax(weak_logits))
  if count == 1:
    return jnp.zeros(1, own.dtype)
  others = (1 - jnp.eye(count, dtype=own.dtype)) / (count - 1)
  taught = jnp.einsum('ji,jibc->ibc', others, jax.nn.softmax(strong_logits))
  return ((taught - own) ** 2).sum(axis=-1).mean(axis=-1)


def confident_expert(
  *, weak_logits: jax.Array, strong_logits: jax.Array, threshold: float
) -> tuple[jax.Array, jax.Array]:
  """Returns L_u: the mean of all experts towards the most confident one's.

  Of each target example the expert that is surest of the weak view gives the
  class, where it is as sure as `threshold`; −log(mean_j p_j + 1e-5) of that
  class on the strong view is averaged over all examples. No gradient flows
  through the choice.

  Args:
    weak_logits: of all experts, `[M, B, C]`.
    strong_logits: likewise, of the same examples.
    threshold: ε.

  Returns:
    The loss and the share of examples above the threshold, both `[]`.
  """
  weak = jax.lax.stop_gradient(jax.nn.softmax(weak_logits))
  surest = weak.max(axis=-1).argmax(axis=0)  # [B], the expert
  chosen = jnp.take_along_axis(weak, surest[None, :, None], axis=0)[0]
  mean = jax.nn.softmax(strong_logits).mean(axis=0)
  labels = chosen.argmax(axis=-1)
  picked = jnp.take_along_axis(mean, labels[:, None], axis=-1)[:, 0]
  kept = (chosen.max(axis=-1) >= threshold).astype(mean.dtype)
  return -(kept * jnp.log(picked + _LEAST)).mean(), kept.mean()
