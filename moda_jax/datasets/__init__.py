"""TFDS builders of the domains; importing this package registers them.

TFDS asks no network for what is prepared, and its start is silent.
"""

import os

# TensorFlow reads these when it starts, at the first use of a data set.
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '0')  # on, it says so each time

from moda_jax.datasets.amazon_reviews import amazon_reviews_dataset_builder
from moda_jax.datasets.mini_digits import mini_digits_dataset_builder
from moda_jax.datasets.mnist_idx import mnist_idx_dataset_builder
from moda_jax.datasets.mnist_m import mnist_m_dataset_builder
from moda_jax.datasets.office31 import office31_dataset_builder
from moda_jax.datasets.svhn_mat import svhn_mat_dataset_builder
from moda_jax.datasets.synth_digits import synth_digits_dataset_builder

__all__ = [
  'amazon_reviews_dataset_builder',
  'mini_digits_dataset_builder',
  'mnist_idx_dataset_builder',
  'mnist_m_dataset_builder',
  'office31_dataset_builder',
  'svhn_mat_dataset_builder',
  'synth_digits_dataset_builder',
]
