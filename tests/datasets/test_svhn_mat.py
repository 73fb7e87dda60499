"""SVHN from `.mat` files."""

import pathlib

import made_up_files
import numpy as np
import pytest
import scipy.io
import tensorflow_datasets as tfds

from moda_jax.datasets import checksums, digits
from moda_jax.datasets.svhn_mat import svhn_mat_dataset_builder as svhn_mat
from moda_jax.errors import UserError

LABELS = {'train': np.arange(1, 11).repeat(2), 'test': np.arange(1, 11)}


def _write(place):
  return {
    split: made_up_files.write_mat_digits(
      place / f'{split}_32x32.mat', len(labels), labels
    )
    for split, labels in LABELS.items()
  }


@pytest.mark.parametrize('folder', ['svhn', 'svhn_mat', '.'])
def test_every_layout(tmp_path, folder):
  images = _write(tmp_path / folder)
  builder = made_up_files.build('svhn_mat', tmp_path, tmp_path / 'data')
  for split, labels in LABELS.items():
    truth = {
      image.tobytes(): 0 if label == 10 else label
      for image, label in zip(images[split], labels, strict=True)
    }
    examples = made_up_files.examples(builder, split)
    assert len(examples) == len(labels)
    for example in examples:
      assert truth[example['image'].tobytes()] == example['label']


@pytest.mark.parametrize('wrong', [0, 11, -1, 2.5])
def test_labels_out_of_range_are_refused(tmp_path, wrong):
  _write(tmp_path)
  labels = np.array([3, wrong, 4])
  made_up_files.write_mat_digits(tmp_path / 'test_32x32.mat', 3, labels)
  with pytest.raises(
    UserError, match='1 of 3 labels are out of range; number 1'
  ):
    made_up_files.build('svhn_mat', tmp_path, tmp_path / 'data')
  assert not made_up_files.leftovers(tmp_path / 'data')


@pytest.mark.parametrize(
  ('arrays', 'message'),
  [
    (
      {'X': np.zeros((28, 28, 3, 2), np.uint8), 'y': [1, 2]},
      r'\(28, 28, 3, 2\)',
    ),
    ({'X': np.zeros((32, 32, 3, 2)), 'y': [1, 2]}, 'float64'),
    (
      {'X': np.zeros((32, 32, 3, 2), np.uint8), 'y': [1]},
      '2 images in X but 1',
    ),
  ],
)
def test_arrays_that_do_not_fit_are_refused(tmp_path, arrays, message):
  scipy.io.savemat(tmp_path / 'x.mat', arrays)
  with pytest.raises(UserError, match=message):
    digits.read_mat_digits(tmp_path / 'x.mat', 1, 10)


def test_a_file_without_examples_is_refused(tmp_path):
  made_up_files.write_mat_digits(tmp_path / 'x.mat', 0, np.zeros(0))
  with pytest.raises(UserError, match=r'x\.mat: there are no labels'):
    digits.read_mat_digits(tmp_path / 'x.mat', 1, 10)


def test_a_single_image_keeps_its_shape(tmp_path):
  """MATLAB drops a last axis of one."""
  made_up_files.write_mat_digits(tmp_path / 'x.mat', 1, [7])
  images, labels = digits.read_mat_digits(tmp_path / 'x.mat', 1, 10)
  assert images.shape == (1, 32, 32, 3)
  assert labels.tolist() == [7]


def test_checksums_are_those_of_tfds():
  package = pathlib.Path(tfds.__file__).parent
  lines = (package / 'datasets/svhn_cropped/checksums.tsv').read_text()
  shipped = {
    url.rsplit('/', 1)[-1]: digest
    for url, _, digest, _ in (line.split('\t') for line in lines.splitlines())
  }
  for split, digest in checksums.SVHN_SHA256.items():
    assert shipped[f'{split}_32x32.mat'] == digest


def test_the_real_files_are_read_and_not_taken_for_the_complete_original():
  manual_dir = made_up_files.real('svhn').parent
  sources = svhn_mat.find_sources(manual_dir)
  for split, source in sources.items():
    images, labels = digits.read_mat_digits(manual_dir / source.file, 1, 10)
    complete = checksums.ORIGINAL_COUNTS['svhn_mat'][split]
    assert source.verified == (len(images) == complete)
    raw = scipy.io.loadmat(manual_dir / source.file)
    assert np.array_equal(images[17], raw['X'][..., 17])
    assert np.array_equal(labels, np.where(raw['y'] == 10, 0, raw['y']).ravel())
