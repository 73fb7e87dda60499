"""Dense networks on the features of a pretrained network that stays fixed."""

import dataclasses

from moda_jax.config import option
from moda_jax.models.backbone import Backbone
from moda_jax.models.mlp import MlpOptions
from moda_jax.models.networks import Networks
from moda_jax.models.pretrained_resnet import read_weights


@dataclasses.dataclass(frozen=True)
class FeaturesOptions(MlpOptions):
  """Dense layers on features of a fixed ResNet-50: photographs on a CPU.

  Attributes:
    pretrained: a file that `moda_jax.models.pretrained` wrote.
    feature_views: weak views of every picture to compute features of; the
      first is the picture itself, and training draws one at every step.
    feature_cache: the folder that features are kept in: 'auto' is one in the
      user's cache folder, 'off' keeps none.
  """

  pretrained: str = option('')
  feature_views: int = option(1, least=1, most=100)
  feature_cache: str = option('auto')

  def create(
    self, num_classes: int, axis_name: str | None = None, variant: str = ''
  ) -> Networks:
    """See `NetworkOptions`; the networks take features, not pictures."""
    networks = super().create(num_classes, axis_name)
    return networks._replace(variant=variant)

  def load_backbone(self) -> Backbone:
    """Reads the weights of what computes the features."""
    return Backbone(read_weights(self.pretrained))
