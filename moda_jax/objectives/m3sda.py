"""M3SDA (Peng et al. 2019): the moments of all domains are matched."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp

from moda_jax.config import option
from moda_jax.models.networks import at_least_float32
from moda_jax.objectives import metrics, terms
from moda_jax.objectives.forward import Forward, Params, State
from moda_jax.objectives.method import Method


@dataclasses.dataclass(frozen=True)
class M3sdaOptions:
  """Options of M3SDA.

  Attributes:
    m3sda_weight: λ, of the moment distance.
  """

  m3sda_weight: float = option(5e-4, least=0)


class M3sda(Method):
  """Σ_i class_i + λ · moment distance, one classifier per source.

  The distance sums the norms of the differences of first and second raw
  moments of the features, source to target and source to source. The version
  with two classifiers per source and alternating steps is another method.
  """

  Options = M3sdaOptions

  @property
  def heads(self) -> dict[str, int]:
    """One classifier per source."""
    return {'classifier': len(self.sources)}

  def loss(self, forward: Forward) -> jax.Array:
    """See the base class."""
    features = forward.features
    logits = forward.apply('classifier', features['source'])
    class_losses = self.across_devices(
      terms.class_losses(logits=logits, labels=forward.batch['source']['label'])
    )
    z = jnp.concatenate([features['source'], features['weak'][None]])
    distance = self._moment_distance(z.reshape(*z.shape[:2], -1))
    forward.log_by_source(metrics.CLASS, class_losses)
    forward.log(metrics.MOMENT_DISTANCE, distance)
    return class_losses.sum() + self.options.m3sda_weight * distance

  def _moment_distance(self, z: jax.Array) -> jax.Array:
    """Returns that of features `[M + 1, B, F]`, the target's last."""
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

  def predict(self, params: Params, state: State, x: jax.Array) -> jax.Array:
    """Returns the classifiers' plain mean: a weighted one would need labels."""
    z, _ = self.apply('extractor', params, state, x, train=False)
    z = jnp.broadcast_to(z, (len(self.sources), *z.shape))
    logits, _ = self.apply('classifier', params, state, z, train=False)
    return jax.nn.softmax(logits).mean(axis=0)
