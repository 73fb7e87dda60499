"""MoE (Guo, Shah & Barzilay 2018): experts mixed by a learned metric."""

import dataclasses

import jax
import jax.numpy as jnp

from moda_jax.config import option
from moda_jax.models.networks import pooled
from moda_jax.objectives import metrics, source_sets
from moda_jax.objectives.formulas import mmd
from moda_jax.objectives.forward import (
  Answers,
  Batch,
  Forward,
  Params,
  State,
)
from moda_jax.objectives.parts import Predictor
from moda_jax.objectives.predictors.experts import answer_all

_CLIP = (0.01, 2.0)  # of the confidence, in training


@dataclasses.dataclass(frozen=True)
class MoEOptions:
  """Options of MoE.

  Attributes:
    moe_weight: λ, of the mixture's losses; the experts have the rest.
    moe_alignment: γ, of the MMD between sources and target.
    moe_entropy: η, of the entropy of the mixtures.
    moe_rank: of the metric.
  """

  moe_weight: float = option(0.8, least=0, most=1)
  moe_alignment: float = option(0.0, least=0)
  moe_entropy: float = option(0.1, least=0)
  moe_rank: int = option(50, least=1)


class MoE(Predictor):
  """Experts mixed by a learned metric: λ mixture_j + (1 − λ) class_j + η R_h.

  An expert's weight on an example grows with how clearly its source tells the
  classes apart there: α(x) = softmax_j of the second smallest minus the
  smallest distance from x to the class means of source j. For two classes
  this is the paper's |d⁺ − d⁻|; for more the paper defines nothing. Encodings
  are pooled over space, each class of each source has its own metric U.

  class_j is each expert's loss on its own source; mixture_j treats each source
  as target of the others' mixture; R_h is the entropy of those mixtures. γ
  L_adv, the MMD of every source to the target, is added where γ > 0. With one
  source there are no mixtures.

  In training the class means are those of the mini-batch, or the last ones
  seen of a class that it lacks. Predictions use means over all examples, which
  are kept apart from these, so that taking them does not change training.
  """

  Options = MoEOptions
  paper = 'Guo et al. 2018'
  target_views = ('weak',)
  has_key = True
  has_experts = True

  @property
  def heads(self) -> dict[str, int]:
    """One classifier per source."""
    return {'classifier': self.count}

  def init(
    self, rng: jax.Array, params: Params, state: State, x: jax.Array
  ) -> tuple[Params, State]:
    """See the base class."""
    z = self.method.extract(params, state, x)
    logits, _ = self._experts(params, state, z[None])
    sizes = (self.count, logits.shape[-1], z.shape[-1])  # [M, K, F]
    glorot = jax.nn.initializers.glorot_uniform(batch_axis=(0, 1))
    metric = glorot(rng, (*sizes, self.options.moe_rank))
    sets = {
      name: source_sets.empty_sets(*sizes)
      for name in ('batch_sets', 'all_sets')
    }
    return {'metric': metric}, sets

  def answer(self, forward: Forward) -> Answers:
    """See the base class; takes the mini-batch's class means into the state."""
    z, views = forward.features, self.method.classified_views
    encodings = pooled(z['source'], batch_axes=2)  # [M, B, F]
    labels = forward.batch['source']['label']
    sums = self._class_sums(forward.params, encodings, labels)
    sets = source_sets.replace(forward.state['batch_sets'], *sums)
    forward.state = forward.state | {'batch_sets': sets}
    answers = answer_all(self, forward)
    target = {}
    for view in views:
      logits = answers.experts[view][:, None]
      mixed = self._mix(forward.params, sets, z[view][None], logits)
      target[view] = mixed[0]
    return answers._replace(target=target)

  def losses(self, forward: Forward) -> tuple[jax.Array, jax.Array]:
    """See the base class."""
    options, z = self.options, forward.features
    class_losses = forward.class_losses
    encodings = pooled(z['source'], batch_axes=2)  # [M, B, F]
    mixture, entropy = self.method.across_devices(
      self._mixture_terms(forward, encodings)
    )
    forward.log_by_source(metrics.MIXTURE, mixture)
    forward.log(metrics.ENTROPY, entropy)
    weight = options.moe_weight
    rest = options.moe_entropy * entropy
    if options.moe_alignment:
      alignment = self._alignment(encodings, pooled(z['weak']))
      rest += options.moe_alignment * alignment
      forward.log(metrics.ALIGNMENT, alignment)
    return weight * mixture + (1 - weight) * class_losses, rest

  def predict(self, params: Params, state: State, x: jax.Array) -> jax.Array:
    """Returns the experts' probabilities, mixed example by example."""
    z = self.method.extract(params, state, x)[None]
    logits, _ = self._experts(params, state, z)
    return jnp.exp(self._mix(params, state['all_sets'], z, logits)[0])

  def observe_sources(
    self, params: Params, state: State, batch: Batch, first: jax.Array
  ) -> State:
    """Takes source examples into the class means that predictions use."""
    source = batch['source']
    z = self.method.extract(params, state, source['weak'])
    sums = self._class_sums(
      params, pooled(z, batch_axes=2), source['label'], source['mask']
    )
    before = jax.tree.map(
      lambda x: jnp.where(first, jnp.zeros_like(x), x), state['all_sets']
    )
    return state | {'all_sets': source_sets.extend(before, *sums)}

  def _experts(
    self, params: Params, state: State, z: jax.Array
  ) -> tuple[jax.Array, State]:
    """Returns every expert's logits `[M, G, B, K]` on features `[G, B, …]`."""
    z = jnp.broadcast_to(z, (self.count, *z.shape))
    return self.method.apply('classifier', params, state, z, train=False)

  def _mix(
    self,
    params: Params,
    sets: source_sets.Sets,
    z: jax.Array,
    logits: jax.Array,
  ) -> jax.Array:
    """Returns the mixture's log-probabilities `[G, B, K]`, as in predictions.

    Args:
      params: of the method.
      sets: the class means to be near to.
      z: features `[G, B, …]`.
      logits: of the experts on them, `[M, G, B, K]`.
    """
    scores = source_sets.confidence(
      metric=params['metric'], sets=sets, encodings=pooled(z, batch_axes=2)
    )
    log_alpha = jax.nn.log_softmax(scores, axis=0)[..., None]
    return jax.nn.logsumexp(log_alpha + jax.nn.log_softmax(logits), axis=0)

  def _class_sums(
    self,
    params: Params,
    encodings: jax.Array,
    labels: jax.Array,
    mask: jax.Array | None = None,
  ) -> tuple[jax.Array, jax.Array]:
    sums = source_sets.class_sums(
      encodings=encodings,
      labels=labels,
      mask=jnp.ones_like(labels, bool) if mask is None else mask,
      classes=params['metric'].shape[1],
    )
    axis_name = self.method.axis_name
    return sums if axis_name is None else jax.lax.psum(sums, axis_name)

  def _mixture_terms(
    self, forward: Forward, encodings: jax.Array
  ) -> tuple[jax.Array, jax.Array]:
    """Takes each source as target of the others: losses `[M]`, mean entropy."""
    count = self.count
    if count == 1:
      return jnp.zeros(1), jnp.zeros(())
    logits = forward.answers.experts['source']
    labels = forward.batch['source']['label']
    scores = source_sets.confidence(
      metric=forward.params['metric'],
      sets=forward.state['batch_sets'],
      encodings=encodings,
    )  # [M, G, B]: expert, source of the example, example
    itself = jnp.eye(count, dtype=bool)[..., None]
    scores = jnp.where(itself, -jnp.inf, jnp.clip(scores, *_CLIP))
    log_alpha = jax.nn.log_softmax(scores, axis=0)
    log_p = jax.nn.log_softmax(logits)  # [M, G, B, K]
    picked = jnp.take_along_axis(log_p, labels[None, ..., None], axis=-1)
    losses = -jax.nn.logsumexp(log_alpha + picked[..., 0], axis=0).mean(axis=-1)
    finite = jnp.where(itself, 0, log_alpha)
    entropy = -(jnp.exp(log_alpha) * finite).sum(axis=0).mean()
    return losses, entropy

  def _alignment(self, encodings: jax.Array, target: jax.Array) -> jax.Array:
    """Returns Σ_i MMD of source i and the target, over the whole mini-batch."""
    axis_name = self.method.axis_name
    if axis_name is not None:
      encodings, target = (
        jax.lax.all_gather(x, axis_name, axis=x.ndim - 2, tiled=True)
        for x in (encodings, target)
      )
    return mmd.mmd_to_target(source=encodings, target=target).sum()
