"""Which classifiers there are and what predicts, by name in `PREDICTORS`."""

from moda_jax.objectives.parts import Predictor
from moda_jax.objectives.predictors.experts import Experts
from moda_jax.objectives.predictors.moe import MoE
from moda_jax.objectives.predictors.shared import Shared
from moda_jax.objectives.predictors.taught import Taught

PREDICTORS: dict[str, type[Predictor]] = {
  'shared': Shared,
  'experts': Experts,
  'taught': Taught,
  'moe': MoE,
}
