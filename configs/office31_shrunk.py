"""Office-31 shrunk for CPUs: smaller images, early stages kept as they are.

  python -m moda_jax.main --config=configs/office31_shrunk.py:webcam \
    --workdir=runs/webcam_shrunk

is `office31.py` but for this: images of 128 × 128; ResNet-50 up to its stage 2
(conv3_x) stays as it is pretrained, BatchNorm included, and is computed anew
for every view; 300 steps instead of 15 epochs. Its figures are those of a
shrunk setting and not comparable with the paper's.
"""

import ml_collections

from configs import office31
from configs.office31 import DATASETS
from moda_jax import config as config_lib


def get_config(argument: str = 'webcam') -> ml_collections.ConfigDict:
  """Returns the config for `<target>[,key=value…]`."""
  config = office31.office31_config()
  config.experiment = 'office31 shrunk'
  config.image_size = 128
  config.frozen_stages = 2
  config.epochs, config.steps = 0, 300
  config.log_every = 25
  config.eval_every = config.checkpoint_every = 100
  return config_lib.apply_argument(
    config, argument, DATASETS, 'configs/office31_shrunk.py'
  )
