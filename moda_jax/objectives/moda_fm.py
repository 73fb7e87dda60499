"""MODA-FM: MODA with FixMatch consistency on the target."""

from moda_jax.objectives import moda


class ModaFM(moda.Moda):
  """MODA's objective + μ_c · consistency."""

  views = ('weak', 'strong')
