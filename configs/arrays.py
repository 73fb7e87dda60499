r"""Your own arrays: a `.npz` file for every domain.

  python -m moda_jax.main --config=configs/arrays.py:PATH,target=DOMAIN \
    --workdir=runs/mine

takes PATH/<domain>.npz, all domains but the target as sources. Each holds
`images`, [N, H, W] or [N, H, W, 1 or 3], bytes or floats in 0..1, and `labels`,
[N], whole numbers or names; the target's labels serve evaluation alone and may
be missing. Where labels are whole numbers, `classes` may name them. Classes are
matched by name. --mode=predict writes predictions.csv. From Python,
`moda_jax.own_data.adapt` takes the same as {name: (images, labels)}.

Further values follow as key=value; the default network learns from scratch at
32 × 32, and images are brought to that size.
"""

import ml_collections

from moda_jax import own_data
from moda_jax.data.read_files import find_arrays


def get_config(argument: str = '') -> ml_collections.ConfigDict:
  """Returns the config for `path,target=domain[,key=value…]`."""
  return own_data.apply_path_argument(
    own_data.own_data_config(), argument, find_arrays, 'configs/arrays.py'
  )
