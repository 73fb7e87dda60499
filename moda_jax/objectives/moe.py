"""MoE (Guo, Shah & Barzilay 2018): experts mixed by a learned metric."""

import dataclasses

import jax
import jax.numpy as jnp

from moda_jax.config import option
from moda_jax.models.networks import pooled
from moda_jax.objectives import metrics, mmd, source_sets, terms
from moda_jax.objectives.forward import Batch, Forward, Params, State
from moda_jax.objectives.method import Method

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


class MoE(Method):
  """λ L_moe + (1 − λ) L_mtl + γ L_adv + η R_h, one classifier per source.

  An expert's weight on an example grows with how clearly its source tells the
  classes apart there: α(x) = softmax_j of the second smallest minus the
  smallest distance from x to the class means of source j. For two classes
  this is the paper's |d⁺ − d⁻|; for more the paper defines nothing. Encodings
  are pooled over space, each class of each source has its own metric U.

  L_mtl is each expert's class loss on its own source; L_moe treats each source
  as target of the others' mixture; L_adv is the MMD of every source to the
  target; R_h is the entropy of those mixtures. With one source L_moe is empty.

  In training the class means are those of the mini-batch, or the last ones
  seen of a class that it lacks. Predictions use means over all examples, which
  are kept apart from these, so that taking them does not change training.
  """

  Options = MoEOptions

  @property
  def heads(self) -> dict[str, int]:
    """One classifier per source."""
    return {'classifier': len(self.sources)}

  def init(self, rng: jax.Array, x: jax.Array) -> tuple[Params, State]:
    """See the base class."""
    rng, metric_rng = jax.random.split(rng)
    params, state = super().init(rng, x)
    z, _ = self.apply('extractor', params, state, x, train=False)
    logits, _ = self._experts(params, state, z[None], train=False)
    sizes = (len(self.sources), logits.shape[-1], z.shape[-1])  # [M, K, F]
    glorot = jax.nn.initializers.glorot_uniform(batch_axis=(0, 1))
    params['metric'] = glorot(metric_rng, (*sizes, self.options.moe_rank))
    state['batch_sets'] = source_sets.empty_sets(*sizes)
    state['all_sets'] = source_sets.empty_sets(*sizes)
    return params, state

  def loss(self, forward: Forward) -> jax.Array:
    """See the base class."""
    options, labels = self.options, forward.batch['source']['label']
    z = forward.features
    logits, forward.state = self._experts(
      forward.params, forward.state, z['source'], train=True
    )
    encodings = pooled(z['source'], batch_axes=2)  # [M, B, F]
    sums = self._class_sums(forward.params, encodings, labels)
    sets = source_sets.replace(forward.state['batch_sets'], *sums)
    forward.state = forward.state | {'batch_sets': sets}
    own = jnp.moveaxis(jnp.diagonal(logits), -1, 0)  # [M, B, K]
    class_losses, mixture, entropy = self.across_devices(
      (
        terms.class_losses(logits=own, labels=labels),
        *self._mixture_terms(forward.params, sets, encodings, logits, labels),
      )
    )
    forward.log_by_source(metrics.CLASS, class_losses)
    forward.log_by_source(metrics.MIXTURE, mixture)
    forward.log(metrics.ENTROPY, entropy)
    weight = options.moe_weight
    loss = weight * mixture.sum() + (1 - weight) * class_losses.sum()
    loss += options.moe_entropy * entropy
    if options.moe_alignment:
      alignment = self._alignment(encodings, pooled(z['weak']))
      loss += options.moe_alignment * alignment
      forward.log(metrics.ALIGNMENT, alignment)
    return loss

  def predict(self, params: Params, state: State, x: jax.Array) -> jax.Array:
    """Returns the experts' probabilities, mixed example by example."""
    z, _ = self.apply('extractor', params, state, x, train=False)
    logits, _ = self._experts(params, state, z[None], train=False)
    scores = source_sets.confidence(
      metric=params['metric'], sets=state['all_sets'], encodings=pooled(z)[None]
    )
    alpha = jax.nn.softmax(scores, axis=0)  # [M, 1, B]
    return (alpha[..., None] * jax.nn.softmax(logits)).sum(axis=0)[0]

  def observe_sources(
    self, params: Params, state: State, batch: Batch, first: jax.Array
  ) -> State:
    """Takes source examples into the class means that predictions use."""
    source = batch['source']
    z, _ = self.apply('extractor', params, state, source['weak'], train=False)
    sums = self._class_sums(
      params, pooled(z, batch_axes=2), source['label'], source['mask']
    )
    before = jax.tree.map(
      lambda x: jnp.where(first, jnp.zeros_like(x), x), state['all_sets']
    )
    return state | {'all_sets': source_sets.extend(before, *sums)}

  def _experts(
    self, params: Params, state: State, z: jax.Array, train: bool
  ) -> tuple[jax.Array, State]:
    """Returns every expert's logits `[M, G, B, K]` on features `[G, B, …]`."""
    z = jnp.broadcast_to(z, (len(self.sources), *z.shape))
    return self.apply('classifier', params, state, z, train=train)

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
    return (
      sums if self.axis_name is None else jax.lax.psum(sums, self.axis_name)
    )

  def _mixture_terms(
    self,
    params: Params,
    sets: source_sets.Sets,
    encodings: jax.Array,
    logits: jax.Array,
    labels: jax.Array,
  ) -> tuple[jax.Array, jax.Array]:
    """Takes each source as target of the others: losses `[M]`, mean entropy."""
    count = len(self.sources)
    if count == 1:
      return jnp.zeros(1), jnp.zeros(())
    scores = source_sets.confidence(
      metric=params['metric'], sets=sets, encodings=encodings
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
    if self.axis_name is not None:
      encodings, target = (
        jax.lax.all_gather(x, self.axis_name, axis=x.ndim - 2, tiled=True)
        for x in (encodings, target)
      )
    return mmd.mmd_to_target(source=encodings, target=target).sum()
