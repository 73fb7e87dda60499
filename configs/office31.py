"""Office-31, as in the paper: photographs of 31 kinds of office equipment.

  python -m moda_jax.main --config=configs/office31.py:webcam --workdir=runs/w

adapts from Amazon and DSLR to Webcam with ResNet-50 at 256 × 256, 8 images per
domain in a mini-batch, 15 epochs (5,295 steps); for accelerators, see
`office31_shrunk.py` for CPUs. All images of the target are trained on without
labels and evaluated. The paper reports 70.7 ± 0.9 % for MODA-FM on Amazon, 100
± 0 % on DSLR and 99.1 ± 0.1 % on Webcam. μ_s is the paper's, the other two are
the authors' defaults.

The argument is <target>[,key=value…]: amazon, dslr or webcam, and any single
values of the config: dtype=bfloat16 computes in mixed precision, remat=true
needs less memory, pretrained=FILE names the weights of ImageNet (by default
resnet50.npz; moda_jax.models.pretrained makes them). New layers and β move at
the full rate, pretrained ones at a tenth of it. With method=supervised the
target is split into 80 % to train and 20 % to test on.
"""

import ml_collections

from moda_jax.training import config_files

DATASETS = {
  'amazon': 'office31/amazon',
  'dslr': 'office31/dslr',
  'webcam': 'office31/webcam',
}


def get_config(argument: str = 'webcam') -> ml_collections.ConfigDict:
  """Returns the config for `<target>[,key=value…]`."""
  return config_files.apply_argument(
    office31_config(), argument, DATASETS, 'configs/office31.py'
  )


def office31_config() -> ml_collections.ConfigDict:
  """Returns the paper's values."""
  config = config_files.base_config()
  config.experiment = 'office31'
  config.data.datasets.update(DATASETS)
  config.data.evaluate_on = 'target'
  config.data.image_size = 256
  config.network.name = 'resnet50'
  config.network.pretrained = 'resnet50.npz'
  config.objective.update(mu_d=1e-2, mu_s=1e-2, mu_c=0.1)
  config.search.mu_d = (1e-4, 1.0)
  config.search.mu_c = (1e-2, 1.0)
  config.search.epochs = tuple(range(10, 61, 5))
  config.views.weak_flip = True
  config.data.batch_size = 8
  config.run.epochs = 15
  config.optimizer.learning_rate = 0.1
  config.optimizer.rate_multipliers = (
    (r'/Dense_\d+/', 1.0),
    ('^(beta|metric)$', 1.0),
    ('.*', 0.1),
  )
  config.run.log_every = 50
  config.run.eval_every = config.run.checkpoint_every = 353  # an epoch
  config.run.eval_batch_size = 32
  return config
