"""Arrays as people have them: lists, pandas, names with dots."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from moda_jax.errors import UserError
from moda_jax.training import own_arrays


def to_plain(images, labels, size=8):
  data, _ = own_arrays.to_plain({'a': (images, labels)}, 'a', size)
  return data['a']


IMAGES = np.zeros((3, 8, 8, 3), np.uint8)


@pytest.mark.parametrize(
  'labels',
  [
    ['x', 'y', 'x'],
    pd.Series(['x', 'y', 'x']),
    pd.Series(['x', 'y', 'x'], dtype=object),
    pd.Series(['x', 'y', 'x'], dtype='category'),
    pd.Series(['x', 'y', 'x'], dtype='string'),
    np.array(['x', 'y', 'x'], object),
  ],
)
def test_names_in_any_container(labels):
  _, plain = to_plain(IMAGES, labels)
  assert plain.dtype.kind == 'U'
  assert plain.tolist() == ['x', 'y', 'x']


@pytest.mark.parametrize(
  'labels',
  [
    [np.int64(1), np.int32(0), 2],
    pd.Series([1, 0, 2]),
    pd.Series([1, 0, 2], dtype='Int64'),
    pd.Series([1, 0, 2], dtype=object),
  ],
)
def test_whole_numbers_in_any_container(labels):
  _, plain = to_plain(IMAGES, labels)
  assert plain.dtype.kind == 'i'
  assert plain.tolist() == [1, 0, 2]


@pytest.mark.parametrize(
  'labels', [['x', None, 'y'], pd.Series(['x', None], dtype=object)]
)
def test_missing_labels_are_refused_by_domain(labels):
  with pytest.raises(UserError, match="the domain 'a': a label is"):
    to_plain(IMAGES, labels)


def test_pictures_of_different_sizes_are_brought_to_one(tmp_path):
  images = [np.full((h, 9, 3), 7, np.uint8) for h in (5, 12)]
  plain, labels = to_plain(images, None)
  assert (plain.shape, plain.dtype, labels) == ((2, 8, 8, 3), np.uint8, None)
  assert (plain == 7).all()
  Image.new('RGB', (20, 10), 'red').save(tmp_path / 'a.png')
  plain, _ = to_plain([tmp_path / 'a.png'], None)
  assert plain[0, 0, 0].tolist() == [255, 0, 0]
  with pytest.raises(UserError, match="'a' differ in size, and image_size = 0"):
    to_plain(images, None, size=0)
  with pytest.raises(UserError, match="the domain 'a': an image of shape"):
    to_plain([np.zeros((4, 4, 2), np.uint8), np.zeros((3, 3, 3))], None)


def test_arrays_of_one_shape_are_left_as_they_are():
  assert to_plain(IMAGES, None)[0] is IMAGES
  listed = list(IMAGES)
  assert to_plain(listed, None)[0] is listed


def test_names_with_dots():
  data = {'v1.0': (IMAGES, None), 'v2': (IMAGES, None)}
  plain, target = own_arrays.to_plain(data, 'v1.0', 8)
  assert (list(plain), target) == (['v1_0', 'v2'], 'v1_0')
  with pytest.raises(UserError, match=r'alone: a\.b, a_b'):
    own_arrays.to_plain({'a.b': 0, 'a_b': 0}, 'a_b', 8)


@pytest.mark.parametrize('data', [[1, 2], None])
def test_what_is_not_a_mapping_is_left_to_its_refusal(data):
  assert own_arrays.to_plain(data, 't', 8) == (data, 't')
