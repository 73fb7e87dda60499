"""Deep CORAL (Sun & Saenko 2016): the covariances of features match."""

import dataclasses

import jax
import jax.numpy as jnp

from moda_jax.config import option
from moda_jax.models.networks import at_least_float32, pooled
from moda_jax.objectives import metrics as names
from moda_jax.objectives.formulas import coral
from moda_jax.objectives.forward import Forward
from moda_jax.objectives.parts import Aligned, Alignment


@dataclasses.dataclass(frozen=True)
class CoralOptions:
  """Options of `Coral`.

  Attributes:
    coral_weight: λ, of the distances.
  """

  coral_weight: float = option(1.0, least=0)


class Coral(Alignment):
  """λ · ‖C_j − C_target‖² / 4F² by weight, C the covariance of features."""

  Options = CoralOptions
  paper = 'Sun & Saenko 2016'
  target_views = ('weak',)
  metric = names.CORAL

  def __call__(self, forward: Forward) -> Aligned:
    """See the base class."""
    features, across_devices = forward.features, self.method.across_devices
    z = [features['source'], features['weak'][None]]
    x = at_least_float32(pooled(jnp.concatenate(z), batch_axes=2))
    mean = across_devices(x.mean(axis=1))
    scatter = across_devices(coral.scatter(features=x, mean=mean))
    axis_name = self.method.axis_name
    devices = 1 if axis_name is None else jax.lax.axis_size(axis_name)
    distances = coral.covariance_distances(
      source=scatter[:-1], target=scatter[-1], count=devices * x.shape[1]
    )
    return self.aligned(self.options.coral_weight, distances=distances)
