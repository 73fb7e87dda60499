"""Arrays as people have them: lists, pandas, names with dots."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from moda_jax.errors import UserError
from moda_jax.training import own_arrays


def to_plain(images, labels):
  data, _ = own_arrays.to_plain({'a': (images, labels)}, 'a')
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


def test_pictures_of_different_sizes_are_read_later(tmp_path):
  images = [np.full((h, 9, 3), 7, np.uint8) for h in (5, 12)]
  Image.new('RGB', (20, 10), 'red').save(tmp_path / 'a.png')
  plain, labels = to_plain(images, None)
  assert (len(plain), plain.sides([0, 1]), labels) == (2, [5, 9], None)
  read = plain.read(range(2), 8)
  assert (read.shape, read.dtype) == ((2, 8, 8, 3), np.uint8)
  assert (read == 7).all()
  for mixed in ([tmp_path / 'a.png'], [str(tmp_path / 'a.png'), images[0]]):
    plain, _ = to_plain(mixed, None)
    assert plain.read(range(1), 8)[0, 0, 0].tolist() == [255, 0, 0]


@pytest.mark.parametrize(
  ('images', 'message'),
  [
    ([np.zeros((4, 4, 2), np.uint8), np.zeros((3, 3, 3))], 'an image of shape'),
    ([[[1, 2], [3]], [[1]]], 'inhomogeneous shape'),
  ],
)
def test_ragged_images_are_refused_by_domain(images, message):
  with pytest.raises(UserError, match=f"the domain 'a': .*{message}"):
    to_plain(images, None)


def test_ragged_labels_are_refused_by_domain():
  with pytest.raises(UserError, match=r"the domain 'a': labels: .*inhomogen"):
    to_plain(IMAGES, [[1], [2, 3]])


def test_arrays_of_one_shape_are_left_as_they_are():
  assert to_plain(IMAGES, None)[0] is IMAGES
  listed = list(IMAGES)
  assert to_plain(listed, None)[0] is listed


def test_names_with_dots():
  data = {'v1.0': (IMAGES, None), 'v2': (IMAGES, None)}
  plain, target = own_arrays.to_plain(data, 'v1.0')
  assert (list(plain), target) == (['v1_0', 'v2'], 'v1_0')
  with pytest.raises(UserError, match=r'alone: a\.b, a_b'):
    own_arrays.to_plain({'a.b': 0, 'a_b': 0}, 'a_b')


@pytest.mark.parametrize('data', [[1, 2], None])
def test_what_is_not_a_mapping_is_left_to_its_refusal(data):
  assert own_arrays.to_plain(data, 't') == (data, 't')
