"""FM: FixMatch alone, without a discriminator and with equal weights."""

from moda_jax.objectives import source_only


class FM(source_only.SourceOnly):
  """mean_j class_j + μ_c · consistency."""

  views = ('weak', 'strong')
