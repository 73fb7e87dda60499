"""Office-31, as in the paper: photographs of 31 kinds of office equipment.

  python -m moda_jax.main --config=configs/office31.py:webcam --workdir=runs/w

adapts from Amazon and DSLR to Webcam with ResNet-50 at 256 × 256, 8 images a
domain in a mini-batch, 15 epochs (5,295 steps); for accelerators, see
`office31_shrunk.py` for CPUs. All images of the target are trained on without
labels and evaluated. The paper reports 70.7 ± 0.9 % for MODA-FM on Amazon, 100
± 0 % on DSLR and 99.1 ± 0.1 % on Webcam. μ_s is the paper's, the other two are
the authors' defaults.

The argument is <target>[,key=value…]: a target of amazon, dslr, webcam and any
single value of the config: dtype=bfloat16 computes in mixed precision,
remat=true needs less memory, pretrained=FILE names the weights of ImageNet
(resnet50.npz unless told; moda_jax.models.pretrained makes them). Layers made
anew and β move at the full rate, pretrained ones at a tenth of it. With
method=supervised the target is split into 80 % to train and 20 % to test on.
"""

import ml_collections

from moda_jax import config as config_lib

DATASETS = {
  'amazon': 'office31/amazon',
  'dslr': 'office31/dslr',
  'webcam': 'office31/webcam',
}


def get_config(argument: str = 'webcam') -> ml_collections.ConfigDict:
  """Returns the config for `<target>[,key=value…]`."""
  return config_lib.apply_argument(
    office31_config(), argument, DATASETS, 'configs/office31.py'
  )


def office31_config() -> ml_collections.ConfigDict:
  """Returns the paper's values."""
  config = config_lib.base_config()
  config.experiment = 'office31'
  config.datasets.update(DATASETS)
  config.test = 'target'
  config.image_size = 256
  config.network = 'resnet50'
  config.pretrained = 'resnet50.npz'
  config.mu_d, config.mu_s, config.mu_c = 1e-2, 1e-2, 0.1
  config.search.mu_d = (1e-4, 1.0)
  config.search.mu_c = (1e-2, 1.0)
  config.weak_flip = True
  config.batch_size = 8
  config.epochs = 15
  config.learning_rate = 0.1
  config.rate_multipliers = (
    (r'/Dense_\d+/', 1.0),
    ('^(beta|metric)$', 1.0),
    ('.*', 0.1),
  )
  config.log_every = 50
  config.eval_every = config.checkpoint_every = 353  # an epoch
  config.eval_batch_size = 32
  return config
