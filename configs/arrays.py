r"""Your own arrays: a `.npz` file for every domain.

  python -m moda_jax.main --config=configs/arrays.py:PATH,target=DOMAIN \
    --workdir=runs/mine

reads PATH/<domain>.npz, with all domains but the target as sources. Each holds
its examples as one of
  images    [N, H, W] or [N, H, W, 1 or 3], bytes or floats in 0..1
  features  [N, F], rows of numbers of any kind, for network=mlp
  data, indices, indptr, shape  sparse rows, as scipy.sparse.save_npz writes
            them in CSR format
and `labels`, [N], whole numbers or names; the target's labels serve only
evaluation and may be missing. Where labels are whole numbers, `classes` may
name them. Classes are matched by name. --mode=predict writes predictions.csv.
From Python, `moda_jax.adapt` takes the same as {name: (inputs, labels)}.

Further values follow as key=value. The network is chosen by what the files
hold: mlp for rows, for images as in `folder.py`, which are brought to its size.
"""

import ml_collections

from moda_jax.data.read_files import find_arrays
from moda_jax.training import config_files


def get_config(argument: str = '') -> ml_collections.ConfigDict:
  """Returns the config for `path,target=domain[,key=value…]`."""
  return config_files.apply_path_argument(
    config_files.own_data_config(), argument, find_arrays, 'configs/arrays.py'
  )
