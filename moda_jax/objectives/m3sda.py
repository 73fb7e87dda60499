"""M3SDA (Peng et al. 2019): the moments of all domains are matched."""

import itertools

import jax
import jax.numpy as jnp

from moda_jax.models.networks import at_least_float32
from moda_jax.objectives import method, terms


class M3sda(method.Method):
  """Σ_i class_i + λ · moment distance, a classifier a source.

  The distance sums the norms of the differences of first and second raw
  moments of the features, source to target and source to source. The version
  with two classifiers a source and alternating steps is another method.
  """

  @property
  def heads(self) -> dict[str, int]:
    """A classifier a source."""
    return {'classifier': len(self.sources)}

  def loss(
    self,
    params: method.Params,
    state: method.State,
    batch: method.Batch,
    rng: jax.Array,
    step: jax.Array,
  ) -> tuple[jax.Array, tuple[method.Metrics, method.State]]:
    """See the base class."""
    z, state = self.extract(params, state, batch, rng)
    logits, state = self.apply(
      'classifier', params, state, z['source'], train=True
    )
    class_losses = self.across_devices(
      terms.class_losses(logits=logits, labels=batch['source']['label'])
    )
    z = jnp.concatenate([z['source'], z['weak'][None]])
    distance = self._moment_distance(z.reshape(*z.shape[:2], -1))
    metrics = self.by_source('class', class_losses)
    metrics['moment_distance'] = distance
    loss = class_losses.sum() + self.config.m3sda_weight * distance
    return loss, (metrics, state)

  def _moment_distance(self, z: jax.Array) -> jax.Array:
    """Of features `[M + 1, B, F]`, the target's last."""
    z = at_least_float32(z)
    moments = jnp.stack([z.mean(axis=1), (z**2).mean(axis=1)])
    moments = self.across_devices(moments)  # [2, M + 1, F], before the norm
    count = len(self.sources)
    to_target = terms.safe_norm(moments[:, :-1] - moments[:, -1:])
    distance = to_target.sum(axis=0).mean()
    pairs = list(itertools.combinations(range(count), 2))
    if pairs:
      first, second = jnp.array(pairs).T
      between = terms.safe_norm(moments[:, first] - moments[:, second])
      distance += between.sum(axis=0).mean()
    return distance

  def predict(
    self, params: method.Params, state: method.State, x: jax.Array
  ) -> jax.Array:
    """The plain mean of the classifiers: a weighted one would need labels."""
    z, _ = self.apply('extractor', params, state, x, train=False)
    z = jnp.broadcast_to(z, (len(self.sources), *z.shape))
    logits, _ = self.apply('classifier', params, state, z, train=False)
    return jax.nn.softmax(logits).mean(axis=0)
