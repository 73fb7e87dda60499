"""Digits, as in the paper: MNIST, MNIST-M, SVHN, SynthDigits.

  python -m moda_jax.main --config=configs/digits.py:mnistm --workdir=runs/m

adapts from MNIST, SVHN and SynthDigits to MNIST-M at the paper's setting: full
width, 20,000 images per domain, 8 per domain in a mini-batch, 30 epochs (75,000
steps). The paper reports 95.4 ± 0.4 % for MODA-FM on MNIST-M, 98.8 ± 0.1 % on
MNIST and 89.4 ± 1.4 % on SVHN. The three μ are the authors' defaults.
With SynthDigits regenerated, one seed, it has 84.3 % on MNIST-M after 16 epochs
and is still rising (experiments/results/digits_regenerated.md).

Two things differ from the authors' program, init=torch,beta_rate=1, and were
chosen by leaving one source out: MNIST, SVHN and SynthDigits are the target in
turn, learned from the other two, and MNIST-M is never read. Figures are means
over the three, at a quarter of the width, with SynthDigits regenerated and one
seed (experiments/results/digits_small_search.json, remedies_digits_small.md).

Layers start as in He et al. (init=he): 44.7 % after 5,000 steps, against 37.4 %
with PyTorch's start, which stays at chance for thousands of steps, and on
SynthDigits alone for good.

β, which the source weights are the softmax of, moves at a tenth of the rate.
AdaDelta moves it by its rate whatever the gradient, so that at the full one α
leaves sources before they are learned: 44.0 % after 5,000 steps (another run of
the same), against 29.3 % at the full rate and at most 43.1 % with five other
remedies. Equal weights (weights=uniform) have 51.9 % there, more than any that
are learned; on MNIST-M, which chose nothing, they have 64.2 % after five
epochs, the tenth 65.4 and the full rate 54.2.

μ_c = 0.1, the authors' value, has 45.7 % after 10,000 steps. 0.5, which the
paper finds better, has 26.7 % even when the term waits until step 5,000:
confident mistakes on a source held out become its classes. Minimum class
confusion beside FixMatch (target_term=fixmatch+mcc), which is not the paper's,
has 58.5 %: 75.1 on MNIST and 65.4 on SVHN, but only 35.0 on SynthDigits, where
the default has 21.3, 57.8 and 58.1.
On MNIST-M itself, which chose nothing, μ_c = 1.0 has 76.7 % after ten epochs
and 0.1 has 70.2.

The argument is <target>[,key=value…]: mnist, mnistm, svhn or synth, and any
single values of the config, such as method=moda or width=0.5. The data must be
prepared first; an unprepared domain is refused with a message that says how.
"""

import ml_collections

from moda_jax.training import config_files

DATASETS = {
  'mnist': 'mnist_idx,mnist',
  'mnistm': 'mnist_m/original',
  'svhn': 'svhn_mat,svhn_cropped',
  'synth': 'synth_digits/original',
}


def get_config(argument: str = 'mnistm') -> ml_collections.ConfigDict:
  """Returns the config for `<target>[,key=value…]`."""
  config = config_files.base_config()
  config.experiment = 'digits'
  config.data.datasets.update(DATASETS)
  config.data.samples = 20_000
  config.network.name = 'digits'
  config.network.init = 'he'
  config.objective.update(mu_d=1e-2, mu_s=0.2, mu_c=0.1)
  config.search.mu_d = (1e-4, 1.0)
  config.search.mu_s = (1e-5, 1.0)
  config.search.mu_c = (1e-2, 1.0)
  config.search.epochs = (10, 20, 30, 40, 50, 60)
  config.views.randaugment_exclude = (
    'FlipX',
  )  # does not preserve a digit's label
  config.data.batch_size = 8
  config.run.epochs = 30
  config.optimizer.learning_rate = 0.1
  config.optimizer.beta_rate = 0.1
  config.run.eval_every = config.run.checkpoint_every = 2500  # an epoch
  return config_files.apply_argument(
    config, argument, DATASETS, 'configs/digits.py'
  )
