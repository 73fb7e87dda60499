"""MMD as an alignment (Gretton et al. 2012, DAN of Long et al. 2015)."""

import dataclasses

import jax

from moda_jax.config import option
from moda_jax.models.networks import pooled
from moda_jax.objectives import metrics as names
from moda_jax.objectives.formulas import mmd
from moda_jax.objectives.forward import Forward
from moda_jax.objectives.parts import Aligned, Alignment


@dataclasses.dataclass(frozen=True)
class MmdOptions:
  """Options of `Mmd`.

  Attributes:
    mmd_weight: λ, of the discrepancies.
  """

  mmd_weight: float = option(1.0, least=0)


class Mmd(Alignment):
  """λ · MMD² of source j and target by weight, with many kernel widths.

  The unbiased estimate: the biased one draws all features of a small batch
  together, and classes with them.
  """

  Options = MmdOptions
  paper = 'Long et al. 2015'
  target_views = ('weak',)
  metric = names.MMD

  def __call__(self, forward: Forward) -> Aligned:
    """See the base class; examples of all devices are compared."""
    source = pooled(forward.features['source'], batch_axes=2)
    target = pooled(forward.features['weak'])
    axis_name = self.method.axis_name
    if axis_name is not None:
      source, target = (
        jax.lax.all_gather(x, axis_name, axis=x.ndim - 2, tiled=True)
        for x in (source, target)
      )
    distances = mmd.mmd_to_target(source=source, target=target, unbiased=True)
    return self.aligned(self.options.mmd_weight, distances=distances)
