"""Amazon Reviews: sparse counts against the dense matrix."""

import made_up_files
import numpy as np
import pytest
import scipy.sparse
import tensorflow_datasets as tfds

from moda_jax.datasets import checksums
from moda_jax.datasets.amazon_reviews import (
  amazon_reviews_dataset_builder as amazon_reviews,
)
from moda_jax.errors import UserError
from moda_jax.files import raw_arrays

SIZES = (4, 3, 5, 2)


def _dense(example, features):
  row = np.zeros(features, int)
  np.add.at(row, example['indices'], example['counts'])
  return row


def _rows(dense, labels):
  return sorted(
    (*row.tolist(), int(label))
    for row, label in zip(dense, labels, strict=True)
  )


@pytest.mark.parametrize('folder', ['reviews', 'amazon_reviews', '.'])
def test_every_layout_gives_the_matrix(tmp_path, folder):
  path = tmp_path / folder / 'amazon.npz'
  dense, labels = made_up_files.write_reviews(path, SIZES)
  first = 0
  for domain, size in zip(amazon_reviews.DOMAINS, SIZES, strict=True):
    builder = made_up_files.build(
      f'amazon_reviews/{domain}', tmp_path, tmp_path / 'data'
    )
    examples = made_up_files.examples(builder, 'train')
    found = _rows(
      [_dense(example, 50) for example in examples],
      [example['label'] for example in examples],
    )
    here = slice(first, first + size)
    assert found == _rows(dense[here], labels[here] > 0)
    for example in examples:
      assert (np.diff(example['indices']) > 0).all()
    first += size
    assert builder.info.metadata['features'] == 50


def test_the_split_all_of_tfds_reads_everything(tmp_path):
  made_up_files.write_reviews(tmp_path / 'amazon.npz', SIZES)
  builder = made_up_files.build('amazon_reviews/dvd', tmp_path, tmp_path / 'x')
  assert len(builder.as_dataset(split='all')) == 3
  assert builder.info.features['label'].names == ['negative', 'positive']
  loaded = tfds.load(
    'amazon_reviews/dvd', split='train', data_dir=tmp_path / 'x', download=False
  )
  assert loaded.element_spec['indices'].shape.as_list() == [None]


@pytest.mark.parametrize(
  ('changes', 'message'),
  [
    ({'yy': np.zeros(14)}, '14 of 14 labels are out of range'),
    ({'yy': np.ones(13)}, '13 labels for 14 reviews'),
    ({'offset': np.array([0, 4, 7, 14])}, 'offset is'),
    ({'offset': np.array([0, 4, 3, 12, 14])}, 'offset is'),
    ({'offset': np.array([0, 4, 7, 12, 15])}, 'offset is'),
    ({'offset': np.array([0, 4, 7.5, 12, 14])}, 'offset has 1 .* like 7.5'),
    ({'offset': np.array([0, 4, np.nan, 12, 14])}, 'offset has 1 .* like nan'),
    ({'offset': np.array([0, 4, 3, 12, 14], np.uint64)}, 'offset is'),
    ({'offset': np.array([0, 4, 2**63, 12, 14], np.uint64)}, 'offset has 1 '),
    ({'xx_shape': np.array([50])}, 'xx_shape is'),
    ({'xx_shape': np.array([50.5, 14])}, 'xx_shape has 1 .* like 50.5'),
    ({'xx_shape': np.array([np.nan, 14])}, 'xx_shape has 1 .* like nan'),
    ({'xx_shape': np.array([3, 14])}, 'xx_row has .* from 0 to 2'),
    ({'xx_data': np.ones(3, np.int32)}, 'differ in length'),
    (
      {n: np.array([v]) for n, v in zip(
        ('xx_data', 'xx_row', 'xx_col'), (0.5, 0, 0), strict=True
      )},
      'xx_data has 1 values like 0.5',
    ),
    (
      {n: np.array([v]) for n, v in zip(
        ('xx_data', 'xx_row', 'xx_col'), (1, 0, -1), strict=True
      )},
      'xx_col has 1 values like -1',
    ),
    (
      {n: np.array([v, v]) for n, v in zip(
        ('xx_data', 'xx_row', 'xx_col'), (1, 0, 0), strict=True
      )},
      'given twice',
    ),
  ],
)  # fmt: skip
def test_arrays_that_do_not_fit_are_refused(tmp_path, changes, message):
  made_up_files.write_reviews(tmp_path / 'amazon.npz', SIZES, **changes)
  with pytest.raises(UserError, match=message):
    made_up_files.build('amazon_reviews/books', tmp_path, tmp_path / 'data')
  assert not made_up_files.leftovers(tmp_path / 'data')


@pytest.mark.parametrize('kind', [np.float64, np.uint64])
def test_any_type_of_number_gives_the_same_data_set(tmp_path, kind):
  names = ('xx_data', 'xx_shape', 'offset')
  found = []
  for change in (np.int64, kind):
    path = tmp_path / change.__name__ / 'amazon.npz'
    made_up_files.write_reviews(path, SIZES)
    arrays = raw_arrays.read_npz(path, names)
    changed = {name: array.astype(change) for name, array in arrays.items()}
    made_up_files.write_reviews(path, SIZES, **changed)
    builder = made_up_files.build(
      'amazon_reviews/dvd', path.parent, path.parent / 'data'
    )
    found.append(made_up_files.examples(builder, 'train'))
  assert len(found[0]) == len(found[1]) == 3
  for before, after in zip(*found, strict=True):
    for key, value in before.items():
      assert np.array_equal(value, after[key])


def test_a_made_up_file_is_not_taken_for_the_known_one(tmp_path):
  made_up_files.write_reviews(tmp_path / 'amazon.npz', SIZES)
  (source,) = amazon_reviews.find_sources(tmp_path).values()
  assert not source.verified


def test_the_real_file_is_the_known_one():
  manual_dir = made_up_files.real('reviews', 'amazon.npz').parents[1]
  (source,) = amazon_reviews.find_sources(manual_dir).values()
  assert source.verified


@pytest.fixture(scope='module')
def real_kitchen(tmp_path_factory):
  manual_dir = made_up_files.real('reviews', 'amazon.npz').parents[1]
  data_dir = tmp_path_factory.mktemp('tfds')
  return made_up_files.build('amazon_reviews/kitchen', manual_dir, data_dir)


def test_the_real_file_has_all_reviews():
  path = made_up_files.real('reviews', 'amazon.npz')
  sizes = np.diff(amazon_reviews.read_arrays(path)['offset'])
  for domain, size in zip(amazon_reviews.DOMAINS, sizes, strict=True):
    expected = checksums.ORIGINAL_COUNTS[f'amazon_reviews/{domain}']
    assert expected == {'train': size}
  assert sizes.sum() == 27_677


def test_the_real_kitchen_is_that_of_scipy(real_kitchen):
  """Sums over reviews and over features, by label, against scipy.sparse."""
  raw = np.load(made_up_files.real('reviews', 'amazon.npz'))
  matrix = scipy.sparse.coo_matrix(
    (raw['xx_data'], (raw['xx_col'], raw['xx_row'])), raw['xx_shape'][::-1]
  ).tocsr()[19_732:]
  positive = raw['yy'].ravel()[19_732:] > 0
  examples = made_up_files.examples(real_kitchen, 'train')
  labels = np.array([example['label'] for example in examples])
  assert len(examples) == 7_945
  totals = np.array([example['counts'].sum() for example in examples])
  for label in (0, 1):
    expected = matrix[positive == label]
    by_review = np.sort(np.asarray(expected.sum(1)).ravel())
    assert np.array_equal(np.sort(totals[labels == label]), by_review)
    by_feature = np.zeros(5000, int)
    for example in np.array(examples, object)[labels == label]:
      by_feature += _dense(example, 5000)
    assert np.array_equal(by_feature, np.asarray(expected.sum(0)).ravel())
