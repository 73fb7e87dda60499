"""MNIST from idx files."""

import hashlib

import made_up_files
import numpy as np
import pytest

from moda_jax.datasets import checksums, manual
from moda_jax.datasets.mnist_idx import mnist_idx_dataset_builder as mnist_idx
from moda_jax.errors import UserError


@pytest.mark.parametrize('compress', [True, False])
@pytest.mark.parametrize('folder', ['mnist', 'mnist_idx', '.'])
def test_every_layout(tmp_path, folder, compress):
  manual_dir = tmp_path / 'manual'
  arrays = made_up_files.write_mnist(manual_dir / folder, compress=compress)
  builder = made_up_files.build('mnist_idx', manual_dir, tmp_path / 'data')
  for split, (images, labels) in arrays.items():
    examples = made_up_files.examples(builder, split)
    # Black all around, the digit in the middle, the channels equal.
    expected = np.zeros((len(images), 32, 32, 3), np.uint8)
    expected[:, 2:30, 2:30] = images[..., np.newaxis]
    truth = {
      image.tobytes(): label
      for image, label in zip(expected, labels, strict=True)
    }
    assert len(examples) == len(images)
    for example in examples:
      assert truth[example['image'].tobytes()] == example['label']


def test_the_order_does_not_depend_on_the_packing(tmp_path):
  orders = []
  for compress in (True, False):
    place = tmp_path / str(compress)
    made_up_files.write_mnist(place, compress=compress)
    builder = made_up_files.build('mnist_idx', place, place / 'data')
    examples = made_up_files.examples(builder, 'train')
    orders.append([example['image'].tobytes() for example in examples])
  assert orders[0] == orders[1]


def test_all_missing_files_are_named(tmp_path):
  made_up_files.write_mnist(tmp_path / 'mnist')
  for part in ('train-labels-idx1', 't10k-images-idx3'):
    (tmp_path / 'mnist' / f'{part}-ubyte.gz').unlink()
  with pytest.raises(manual.MissingFile) as caught:
    mnist_idx.find_sources(tmp_path)
  first = str(caught.value).splitlines()[0]
  assert 'train-labels-idx1-ubyte.gz, t10k-images-idx3-ubyte.gz' in first
  assert 'train-images' not in first
  assert str(tmp_path / 'mnist') in str(caught.value)


def _overwrite(place, name, array):
  (place / name).write_bytes(made_up_files.idx(array))


@pytest.mark.parametrize(
  ('name', 'array', 'message'),
  [
    ('train-labels-idx1-ubyte', np.full(30, 10), '30 of 30 labels are out of'),
    ('train-labels-idx1-ubyte', np.zeros(29), '30 images but'),
    ('train-images-idx3-ubyte', np.zeros((30, 27, 28)), r'\(30, 27, 28\)'),
    ('train-images-idx3-ubyte', np.zeros((30, 784)), r'\(30, 784\)'),
    ('train-labels-idx1-ubyte', np.zeros((30, 1)), r'\(30, 1\)'),
  ],
)
def test_files_that_do_not_fit_are_refused(tmp_path, name, array, message):
  made_up_files.write_mnist(tmp_path, compress=False)
  _overwrite(tmp_path, name, array)
  with pytest.raises(UserError, match=message):
    made_up_files.build('mnist_idx', tmp_path, tmp_path / 'data')
  assert not made_up_files.leftovers(tmp_path / 'data')


def test_files_without_examples_are_refused(tmp_path):
  made_up_files.write_mnist(tmp_path, test=0)
  with pytest.raises(UserError, match=r't10k-labels.*there are no labels'):
    made_up_files.build('mnist_idx', tmp_path, tmp_path / 'data')
  assert not made_up_files.leftovers(tmp_path / 'data')


def test_made_up_files_are_not_taken_for_the_original(tmp_path):
  made_up_files.write_mnist(tmp_path)
  sources = mnist_idx.find_sources(tmp_path)
  assert not any(source.verified for source in sources.values())


def test_the_real_files_are_the_original():
  manual_dir = made_up_files.real('mnist').parent
  sources = mnist_idx.find_sources(manual_dir)
  assert all(source.verified for source in sources.values())
  # MD5s of the unpacked files as published in many places.
  published = {
    'train-images': '6bbc9ace898e44ae57da46a324031adb',
    'train-labels': 'a25bea736e30d166cdddb491f175f624',
    't10k-images': '2646ac647ad5339dbf082846283269ea',
    't10k-labels': '27ae3e4e09519cfbb04c329615203637',
  }
  for split, prefix in (('train', 'train'), ('test', 't10k')):
    images, labels = mnist_idx.read_split(manual_dir, split)
    assert len(images) == checksums.ORIGINAL_COUNTS['mnist_idx'][split]
    for part, array in (('images', images), ('labels', labels)):
      content = made_up_files.idx(array)
      digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
      assert digest == published[f'{prefix}-{part}']
