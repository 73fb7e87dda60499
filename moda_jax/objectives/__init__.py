"""Objectives: one small file per method, found by name in `METHODS`."""

from moda_jax.objectives.dann import DannMS
from moda_jax.objectives.m3sda import M3sda
from moda_jax.objectives.mada import Mada
from moda_jax.objectives.mdan import Mdan, MdanFM, MdanMax
from moda_jax.objectives.method import Method
from moda_jax.objectives.moda import Moda, ModaFM
from moda_jax.objectives.moda_variants import (
  ModaFMDarn,
  ModaFMFloored,
  ModaFMProjected,
  ModaFMRelative,
)
from moda_jax.objectives.moe import MoE
from moda_jax.objectives.single_source import DannSS, MadaSS
from moda_jax.objectives.source_only import FM, SourceOnly
from moda_jax.objectives.supervised import Supervised

METHODS: dict[str, type[Method]] = {
  'source_only': SourceOnly,
  'dann_ss': DannSS,
  'dann_ms': DannMS,
  'mada': Mada,
  'mada_ss': MadaSS,
  'mdan': Mdan,
  'mdan_max': MdanMax,
  'mdan_fm': MdanFM,
  'moe': MoE,
  'm3sda': M3sda,
  'moda': Moda,
  'fm': FM,
  'moda_fm': ModaFM,
  'moda_fm_floored': ModaFMFloored,
  'moda_fm_relative': ModaFMRelative,
  'moda_fm_projected': ModaFMProjected,
  'moda_fm_darn': ModaFMDarn,
  'supervised': Supervised,
}
