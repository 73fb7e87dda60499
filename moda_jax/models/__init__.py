"""Extractor, classifier and discriminator of each experiment, by name.

`NETWORKS` gives, for a name, the dataclass of its options; an instance makes
the networks.
"""

from moda_jax.models.auto import AutoOptions
from moda_jax.models.digits import DigitsOptions
from moda_jax.models.features import FeaturesOptions
from moda_jax.models.mlp import MlpOptions
from moda_jax.models.networks import NetworkOptions
from moda_jax.models.pretrained_resnet import ResNet50Options
from moda_jax.models.reviews import ReviewsOptions

NETWORKS: dict[str, type[NetworkOptions]] = {
  'digits': DigitsOptions,
  'reviews': ReviewsOptions,
  'resnet50': ResNet50Options,
  'mlp': MlpOptions,
  'features': FeaturesOptions,
  'auto': AutoOptions,
}
