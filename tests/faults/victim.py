"""Trains a small run in a process of its own, for tests to kill.

  python tests/faults/victim.py KIND WORKDIR

says READY when the first step is about to be taken, and DONE in the end. The
folder of all tests must be on PYTHONPATH.
"""

import pathlib
import sys

import numpy as np
import tiny

import moda_jax
from moda_jax import cli
from moda_jax.training import loop
from moda_jax.training.experiment import Experiment

# Lines, evaluations and checkpoints fall on steps of their own, and so often
# that kills meet them.
VALUES = {
  'steps': 120,
  'log_every': 3,
  'eval_every': 20,
  'checkpoint_every': 4,
}


class Backbone:
  """The mean colour and its square, in the place of a large network."""

  features, variant, description = 6, 'made up', 'made up, SHA-256 0'

  def __init__(self, path):
    self.path = pathlib.Path(path)

  def __call__(self, pictures):
    mean = pictures.mean(axis=(1, 2)) / 255
    return np.concatenate([mean, mean**2], axis=1).astype(np.float32)


def make_digits(workdir):
  """Returns mini digits, from TFDS_DATA_DIR."""
  values = VALUES | {'steps': 40, 'width': 0.05, 'batch_size': 4, 'samples': 64}
  pairs = ','.join(f'{name}={value}' for name, value in values.items())
  return moda_jax.get_config(f'mini:mnistm,{pairs}'), None


def make_reviews(workdir):
  """Returns made-up counts of words."""
  config = tiny.make_run_config(network='reviews', width=0.05, **VALUES)
  return config, tiny.make_sparse_domains()


def make_features(workdir):
  """Returns made-up pictures for a fixed network."""
  from moda_jax.models.features import FeaturesOptions

  weights = workdir.parent / 'weights.npz'
  weights.write_bytes(b'weights')
  FeaturesOptions.load_backbone = lambda self: Backbone(self.pretrained)
  config = tiny.make_run_config(
    network='features', hidden=8, image_size=8, feature_cache='off', **VALUES
  )
  config.network.pretrained = str(weights)
  return config, tiny.make_domains()


KINDS = {
  'digits': make_digits,
  'reviews': make_reviews,
  'features': make_features,
}


def main():
  kind, workdir = sys.argv[1], pathlib.Path(sys.argv[2])
  config, data = KINDS[kind](workdir)
  original = Experiment.make_batches

  def make_batches(self, start):
    print('READY', flush=True)
    yield from original(self, start)

  Experiment.make_batches = make_batches
  loop.train(config, workdir, data, devices=1)
  print('DONE', flush=True)


if __name__ == '__main__':
  cli.log_to_stdout()
  cli.end_by_message(main)
