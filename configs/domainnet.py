"""DomainNet: six styles of pictures of 345 things, by TFDS's own builder.

  python -m moda_jax.main --config=configs/domainnet.py:clipart --workdir=runs/c

adapts from the five other domains to clipart with the networks and values of
`office31.py`, which are the paper's for photographs; the paper has no figures
on DomainNet, and none were measured here. TFDS downloads and prepares it:

  python -c 'import tensorflow_datasets as tfds; tfds.load("domainnet/clipart")'

and likewise infograph, painting, quickdraw, real and sketch. Images are held in
memory, 49 KB each at 128 × 128: samples=20000 draws so many a domain, but all
are read.
"""

import ml_collections

from configs import office31
from moda_jax import config as config_lib

DATASETS = {
  name: f'domainnet/{name}'
  for name in (
    'clipart',
    'infograph',
    'painting',
    'quickdraw',
    'real',
    'sketch',
  )
}


def get_config(argument: str = 'clipart') -> ml_collections.ConfigDict:
  """Returns the config for `<target>[,key=value…]`."""
  config = office31.office31_config()
  config.experiment = 'domainnet'
  config.datasets = DATASETS
  config.test = 'split'
  config.image_size = 128
  config.eval_every = config.checkpoint_every = 5000
  return config_lib.apply_argument(
    config, argument, DATASETS, 'configs/domainnet.py'
  )
