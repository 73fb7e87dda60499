"""MODA-FM: MODA with FixMatch consistency on the target."""

from moda_jax.objectives import moda, source_weights


class ModaFM(moda.Moda):
  """MODA's objective + μ_c · consistency."""

  views = ('weak', 'strong')


class ModaFMFloored(ModaFM):
  """MODA-FM with weights of at least ε / M."""

  weights = source_weights.Floored


class ModaFMRelative(ModaFM):
  """MODA-FM with μ_s in units of the mean class loss."""

  weights = source_weights.Relative


class ModaFMProjected(ModaFM):
  """MODA-FM with the objective's own best weights, on averaged losses."""

  weights = source_weights.Projected


class ModaFMDarn(ModaFM):
  """MODA-FM with DARN's weights, on averaged losses."""

  weights = source_weights.Darn
