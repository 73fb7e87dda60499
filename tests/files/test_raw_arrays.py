"""idx, `.mat` and `.npz` against NumPy and SciPy, whole and damaged."""

import gzip
import hashlib
import io
import zipfile

import made_up_files
import numpy as np
import pytest
import scipy.io

from moda_jax.errors import UserError
from moda_jax.files import raw_arrays


@pytest.mark.parametrize('compress', [True, False])
@pytest.mark.parametrize('shape', [(7,), (3, 28, 28)])
def test_idx(tmp_path, shape, compress):
  array = made_up_files.random_image(0, shape)
  content = made_up_files.idx(array)
  path = tmp_path / 'x'
  path.write_bytes(gzip.compress(content) if compress else content)
  read, digest = raw_arrays.read_idx(path)
  assert np.array_equal(read, array)
  assert digest == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
  'content',
  [
    b'',
    b'\0\0\x08',
    b'\0\0\x0d\1\0\0\0\1abcd',  # of floats
    b'\0\0\x08\x09' + bytes(99),
    b'\0\0\x08\1\0\0\0\5abcd',  # one too few
    b'\0\0\x08\1\0\0\0\3abcd',  # one too many
    b'\0\0\x08\4' + b'\xff' * 16,  # a shape beyond any memory
    b'\x1f\x8b\x08 no gzip',
    gzip.compress(made_up_files.idx(np.zeros(1000)), mtime=0)[:-9],
  ],
)
def test_a_damaged_idx_file_is_refused(tmp_path, content):
  path = tmp_path / 'broken'
  path.write_bytes(content)
  with pytest.raises(UserError, match='broken'):
    raw_arrays.read_idx(path)


def test_an_idx_bomb_is_not_unpacked(tmp_path, monkeypatch):
  path = tmp_path / 'bomb'
  path.write_bytes(gzip.compress(bytes(10**6)))
  monkeypatch.setattr(raw_arrays, 'MAX_BYTES', 10**5)
  with pytest.raises(UserError, match='more than 100,000 bytes'):
    raw_arrays.read_idx(path)


@pytest.mark.parametrize('compress', [True, False])
def test_mat(tmp_path, compress):
  path = tmp_path / 'x.mat'
  images = made_up_files.write_mat_digits(path, 5, np.arange(5), compress)
  arrays = raw_arrays.read_mat(path, ('X', 'y'))
  assert np.array_equal(arrays['X'], np.moveaxis(images, 0, -1))
  assert np.array_equal(arrays['y'].ravel(), np.arange(5))


@pytest.mark.parametrize('compress', [True, False])
def test_a_cut_mat_file_is_refused(tmp_path, compress):
  path = tmp_path / 'x.mat'
  made_up_files.write_mat_digits(path, 5, np.arange(5), compress)
  whole = path.read_bytes()
  for length in (0, 100, 130, len(whole) // 2, len(whole) - 40):
    path.write_bytes(whole[:length])
    with pytest.raises(UserError, match=r'x\.mat'):
      raw_arrays.read_mat(path, ('X', 'y'))


def test_a_mat_bomb_is_not_unpacked(tmp_path, monkeypatch):
  path = tmp_path / 'x.mat'
  scipy.io.savemat(path, {'X': np.zeros(10**6)}, do_compression=True)
  assert path.stat().st_size < 20_000
  monkeypatch.setattr(raw_arrays, 'MAX_BYTES', 10**6)

  def load(*args, **kwargs):
    raise AssertionError('was to be refused before')

  monkeypatch.setattr(scipy.io, 'loadmat', load)
  with pytest.raises(UserError, match='more than 1,000,000 bytes'):
    raw_arrays.read_mat(path, ('X',))


@pytest.mark.parametrize(
  ('value', 'message'),
  [
    (np.array(['text']), 'not numeric'),
    (np.array([{'a': 1}, 2], object), 'not numeric'),
    ({'field': 1}, 'not numeric'),
  ],
)
def test_mat_variables_that_are_no_numbers_are_refused(
  tmp_path, value, message
):
  scipy.io.savemat(tmp_path / 'x.mat', {'X': value})
  with pytest.raises(UserError, match=message):
    raw_arrays.read_mat(tmp_path / 'x.mat', ('X',))


def test_a_missing_mat_variable_is_named(tmp_path):
  scipy.io.savemat(tmp_path / 'x.mat', {'Z': 1})
  with pytest.raises(UserError, match=r"no variable 'X'; there are \['Z'\]"):
    raw_arrays.read_mat(tmp_path / 'x.mat', ('X',))


def test_other_versions_of_mat_are_refused(tmp_path):
  header = b'MATLAB 7.3 MAT-file'.ljust(124) + b'\0\2IM'
  (tmp_path / 'new.mat').write_bytes(header + bytes(600))
  scipy.io.savemat(tmp_path / 'old.mat', {'X': 1}, format='4')
  for name in ('new.mat', 'old.mat'):
    with pytest.raises(UserError, match='is not a MATLAB 5–7 file'):
      raw_arrays.read_mat(tmp_path / name, ('X',))


@pytest.mark.parametrize('save', [np.savez, np.savez_compressed])
def test_npz(tmp_path, save):
  arrays = {
    'a': np.arange(6).reshape(2, 3),
    'f': np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    'z': np.zeros((0, 4), np.uint8),
  }
  save(tmp_path / 'x.npz', **arrays)
  read = raw_arrays.read_npz(tmp_path / 'x.npz', tuple(arrays))
  for name, array in arrays.items():
    assert read[name].dtype == array.dtype
    assert np.array_equal(read[name], array)


class _Evil:
  """Leaves a file behind when unpickled."""

  def __init__(self, path):
    self.path = path

  def __reduce__(self):
    return (open, (str(self.path), 'w'))


def test_a_pickle_in_an_npz_is_not_run(tmp_path):
  trace = tmp_path / 'trace'
  np.savez(tmp_path / 'x.npz', a=np.array([_Evil(trace)], object))
  with pytest.raises(UserError, match='type object are not read'):
    raw_arrays.read_npz(tmp_path / 'x.npz', ('a',))
  assert not trace.exists()


def _write_npz(path, name, content):
  with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as archive:
    archive.writestr(name, content)


def test_a_false_shape_in_an_npz_is_refused(tmp_path):
  content = io.BytesIO()
  np.lib.format.write_array_header_1_0(
    content, {'descr': '<f8', 'fortran_order': False, 'shape': (10**9, 10**3)}
  )
  _write_npz(tmp_path / 'x.npz', 'a.npy', content.getvalue() + bytes(80))
  with pytest.raises(UserError, match=r'a\.npy cannot be read'):
    raw_arrays.read_npz(tmp_path / 'x.npz', ('a',))


@pytest.mark.parametrize(
  'header',
  [
    b'{',
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (",
    b'[' * 900,
    b"{1: 2, 'a': 3}",
    b'{[]: 1}',
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (%d,)}" % 10**30,
  ],
)
def test_a_damaged_header_in_an_npz_is_refused(tmp_path, header):
  length = len(header).to_bytes(2, 'little')
  content = b'\x93NUMPY\1\0' + length + header + bytes(80)
  _write_npz(tmp_path / 'x.npz', 'a.npy', content)
  with pytest.raises(UserError, match=r'a\.npy cannot be read'):
    raw_arrays.read_npz(tmp_path / 'x.npz', ('a',))


def test_a_damaged_member_in_any_compression_is_refused(tmp_path):
  path = tmp_path / 'x.npz'
  for kind in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
    content = io.BytesIO()
    np.save(content, made_up_files.random_image(0, (1000,)))
    with zipfile.ZipFile(path, 'w', kind) as archive:
      archive.writestr('a.npy', content.getvalue())
    damaged = bytearray(path.read_bytes())
    damaged[35:90] = bytes(55)
    path.write_bytes(damaged)
    with pytest.raises(UserError, match=r'x\.npz'):
      raw_arrays.read_npz(path, ('a',))


def test_an_npz_bomb_is_not_unpacked(tmp_path, monkeypatch):
  np.savez_compressed(tmp_path / 'x.npz', a=np.zeros(10**6))
  monkeypatch.setattr(raw_arrays, 'MAX_BYTES', 10**6)
  with pytest.raises(UserError, match='unpacks to 8,000,128 bytes'):
    raw_arrays.read_npz(tmp_path / 'x.npz', ('a',))


def test_a_damaged_npz_is_refused(tmp_path):
  path = tmp_path / 'x.npz'
  np.savez_compressed(path, a=made_up_files.random_image(0, (1000,)))
  whole = path.read_bytes()
  for length in (0, 50, len(whole) // 2, len(whole) - 5):
    path.write_bytes(whole[:length])
    with pytest.raises(UserError, match=r'x\.npz'):
      raw_arrays.read_npz(path, ('a',))
  flipped = bytearray(whole)
  flipped[500] ^= 255
  path.write_bytes(flipped)
  with pytest.raises(UserError, match=r'x\.npz'):
    raw_arrays.read_npz(path, ('a',))


def test_a_missing_npz_array_is_named(tmp_path):
  np.savez(tmp_path / 'x.npz', b=1)
  with pytest.raises(UserError, match=r"no array 'a'; there are \['b'\]"):
    raw_arrays.read_npz(tmp_path / 'x.npz', ('a',))
