"""MODA-FM with other source weights, which do not starve a source."""

import dataclasses

from moda_jax.objectives import source_weights
from moda_jax.objectives.moda import ModaFM, ModaFMOptions


@dataclasses.dataclass(frozen=True)
class FlooredOptions(source_weights.FlooredOptions, ModaFMOptions):
  """Options of `ModaFMFloored`."""


@dataclasses.dataclass(frozen=True)
class ProjectedOptions(source_weights.ProjectedOptions, ModaFMOptions):
  """Options of `ModaFMProjected`."""


@dataclasses.dataclass(frozen=True)
class DarnOptions(source_weights.DarnOptions, ModaFMOptions):
  """Options of `ModaFMDarn`."""


class ModaFMFloored(ModaFM):
  """MODA-FM with weights of at least ε / M."""

  Options = FlooredOptions
  weights = source_weights.Floored


class ModaFMRelative(ModaFM):
  """MODA-FM with μ_s in units of the mean class loss."""

  weights = source_weights.Relative


class ModaFMProjected(ModaFM):
  """MODA-FM with the objective's own best weights, on averaged losses."""

  Options = ProjectedOptions
  weights = source_weights.Projected


class ModaFMDarn(ModaFM):
  """MODA-FM with DARN's weights (Wen et al. 2020), on averaged losses."""

  Options = DarnOptions
  weights = source_weights.Darn
