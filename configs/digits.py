"""Digits, as in the paper: MNIST, MNIST-M, SVHN, SynthDigits.

  python -m moda_jax.main --config=configs/digits.py:mnistm --workdir=runs/m

adapts from MNIST, SVHN and SynthDigits to MNIST-M at the paper's setting: full
width, 20,000 images a domain, 8 a domain in a mini-batch, 30 epochs (75,000
steps). The paper reports 95.4 ± 0.4 % for MODA-FM on MNIST-M, 98.8 ± 0.1 % on
MNIST and 89.4 ± 1.4 % on SVHN. The three μ are the authors' defaults.

The argument is <target>[,key=value…]: a target of mnist, mnistm, svhn, synth
and any single value of the config, such as method=moda or width=0.5. The data
must be prepared first; an unprepared domain is refused with the way to do it.
"""

import ml_collections

from moda_jax import config as config_lib

DATASETS = {
  'mnist': 'mnist_idx,mnist',
  'mnistm': 'mnist_m/original',
  'svhn': 'svhn_mat,svhn_cropped',
  'synth': 'synth_digits/original',
}


def get_config(argument: str = 'mnistm') -> ml_collections.ConfigDict:
  """Returns the config for `<target>[,key=value…]`."""
  config = config_lib.base_config()
  config.experiment = 'digits'
  config.datasets.update(DATASETS)
  config.samples = 20_000
  config.network = 'digits'
  config.mu_d, config.mu_s, config.mu_c = 1e-2, 0.2, 0.1
  config.search.mu_d = (1e-4, 1.0)
  config.search.mu_s = (1e-5, 1.0)
  config.search.mu_c = (1e-2, 1.0)
  config.randaugment_exclude = ('FlipX',)  # does not preserve a digit's label
  config.batch_size = 8
  config.epochs = 30
  config.learning_rate = 0.1
  config.eval_every = config.checkpoint_every = 2500  # an epoch
  return config_lib.apply_argument(
    config, argument, DATASETS, 'configs/digits.py'
  )
