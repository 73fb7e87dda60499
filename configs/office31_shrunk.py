"""Office-31 shrunk for CPUs: smaller images, early stages kept as they are.

  python -m moda_jax.main --config=configs/office31_shrunk.py:webcam \
    --workdir=runs/webcam_shrunk

is `office31.py` except for this: images of 128 × 128; ResNet-50 up to its stage
2 (conv3_x) stays as pretrained, BatchNorm included, and is computed again for
every view; 300 steps instead of 15 epochs. Its figures are those of a shrunk
setting and not comparable with the paper's.
"""

import ml_collections

from moda_jax.config import import_beside
from moda_jax.training import config_files

office31 = import_beside(__file__, 'office31')
DATASETS = office31.DATASETS


def get_config(argument: str = 'webcam') -> ml_collections.ConfigDict:
  """Returns the config for `<target>[,key=value…]`."""
  config = office31.office31_config()
  config.experiment = 'office31 shrunk'
  config.data.image_size = 128
  config.network.frozen_stages = 2
  config.run.epochs, config.run.steps = 0, 300
  config.run.log_every = 25
  config.run.eval_every = config.run.checkpoint_every = 100
  return config_files.apply_argument(
    config, argument, DATASETS, 'configs/office31_shrunk.py'
  )
