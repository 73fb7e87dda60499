"""M3SDA's alignment (Peng et al. 2019): the moments of all domains match."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp

from moda_jax.config import option
from moda_jax.models.networks import at_least_float32
from moda_jax.objectives import metrics as names
from moda_jax.objectives.formulas import terms
from moda_jax.objectives.forward import Forward
from moda_jax.objectives.parts import Aligned, Alignment


@dataclasses.dataclass(frozen=True)
class MomentsOptions:
  """Options of `Moments`.

  Attributes:
    m3sda_weight: λ, of the moment distance.
  """

  m3sda_weight: float = option(5e-4, least=0)


class Moments(Alignment):
  """λ · distance of first and second moments, over all pairs of domains.

  The distance sums the norms of the differences of first and second raw
  moments of the features, source to target and source to source, each on
  average over its pairs; the weights of the sources play no part. M3SDA's
  version with two classifiers per source and alternating steps is another
  method.
  """

  Options = MomentsOptions
  paper = 'Peng et al. 2019'
  target_views = ('weak',)
  metric = names.MOMENT_DISTANCE

  def __call__(self, forward: Forward) -> Aligned:
    """See the base class."""
    features = forward.features
    z = jnp.concatenate([features['source'], features['weak'][None]])
    distance = self._moment_distance(z.reshape(*z.shape[:2], -1))
    return self.aligned(self.options.m3sda_weight, shared=distance)

  def _moment_distance(self, z: jax.Array) -> jax.Array:
    """Returns that of features `[M + 1, B, F]`, the target's last."""
    z = at_least_float32(z)
    moments = jnp.stack([z.mean(axis=1), (z**2).mean(axis=1)])
    # [2, M + 1, F], before the norm
    moments = self.method.across_devices(moments)
    to_target = terms.safe_norm(moments[:, :-1] - moments[:, -1:])
    distance = to_target.sum(axis=0).mean()
    pairs = list(itertools.combinations(range(self.count), 2))
    if pairs:
      first, second = jnp.array(pairs).T
      between = terms.safe_norm(moments[:, first] - moments[:, second])
      distance += between.sum(axis=0).mean()
    return distance
