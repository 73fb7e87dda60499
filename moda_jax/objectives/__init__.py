"""Objectives: one small file a method, found by name in `METHODS`."""

from moda_jax.objectives.fm import FM
from moda_jax.objectives.method import Method
from moda_jax.objectives.moda import Moda
from moda_jax.objectives.moda_fm import ModaFM
from moda_jax.objectives.source_only import SourceOnly

METHODS: dict[str, type[Method]] = {
  'source_only': SourceOnly,
  'moda': Moda,
  'fm': FM,
  'moda_fm': ModaFM,
}
