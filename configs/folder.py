r"""Your own pictures: a folder for every domain, in it one for every class.

  python -m moda_jax.main --config=configs/folder.py:PATH,target=DOMAIN \
    --workdir=runs/mine

reads PATH/<domain>/<class>/*.{jpg,jpeg,png,bmp,webp} of any size and mode,
turned as their EXIF orientation says; all domains but the target are sources.
The target's pictures may be in classes, which then serve only evaluation, or
flat in PATH/DOMAIN, without labels. With --mode=predict the run then writes
predictions.csv: every picture of the target with its class.

Classes are matched by name. Further values follow as key=value: image_size=64
reads larger pictures, weak_flip=false does without mirroring. The default
network learns from scratch at 32 × 32: expect little of it on photographs. For
these choose network=resnet50,pretrained=resnet50.npz,image_size=256, with
weights that moda_jax.models.pretrained has converted; on a CPU image_size=128
and frozen_stages=2.
"""

import ml_collections

from moda_jax.data.read_files import find_folders
from moda_jax.training import config_files


def get_config(argument: str = '') -> ml_collections.ConfigDict:
  """Returns the config for `path,target=domain[,key=value…]`."""
  return config_files.apply_path_argument(
    config_files.own_data_config(), argument, find_folders, 'configs/folder.py'
  )
