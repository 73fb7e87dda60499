"""DomainNet: six styles of pictures of 345 things, by TFDS's own builder.

  python -m moda_jax.main --config=configs/domainnet.py:clipart --workdir=runs/c

adapts from the five other domains to clipart with the networks and values of
`office31.py`, which are the paper's for photographs; the paper has no figures
on DomainNet, and none were measured here. TFDS downloads and prepares it:

  python -c 'import tensorflow_datasets as tfds; tfds.builder(
    "domainnet/clipart", file_format="array_record").download_and_prepare()'

and likewise infograph, painting, quickdraw, real and sketch. As ArrayRecord the
pictures stay on disk and are read when they are needed, unless they fit into
half of the memory that is free, 49 KB each at 128 × 128 (`memory=yes|no`
chooses). Prepared in TFDS's usual format they are always held in memory.
"""

import ml_collections

from moda_jax.config import import_beside
from moda_jax.training import config_files

office31 = import_beside(__file__, 'office31')

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
  config.data.datasets = DATASETS
  config.data.evaluate_on = 'test_split'
  config.data.image_size = 128
  config.run.eval_every = config.run.checkpoint_every = 5000
  return config_files.apply_argument(
    config, argument, DATASETS, 'configs/domainnet.py'
  )
