"""Arrays in files of unknown origin: idx, `.mat`, `.npz`; never pickles."""

import contextlib
import gzip
import hashlib
import io
import pathlib
import signal
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator, Sequence

import numpy as np

from moda_jax.errors import UserError
from moda_jax.files import archives

# SVHN's largest file (531,131 images) holds 1.6 GB.
MAX_BYTES = 2 * 2**30

_CHUNK = 2**20
_IDX_UINT8 = 8
_MAT_HEADER = 128
_MAT_COMPRESSED = 15


def read_idx(path: pathlib.Path) -> tuple[np.ndarray, str]:
  """Reads an idx file of uint8, gzipped or not.

  Args:
    path: the file; whether it is compressed is seen from its content.

  Returns:
    The array, and the SHA-256 of the unpacked bytes, which stays the same
    however the file was compressed.
  """
  content = _read_maybe_gzip(path)
  if len(content) < 4 or content[:2] != b'\0\0' or content[2] != _IDX_UINT8:
    raise UserError(f'{path} is not an idx file of bytes.')
  rank = content[3]
  start = 4 + 4 * rank
  if not 1 <= rank <= 4 or len(content) < start:
    raise UserError(f'{path}: the idx header is damaged.')
  shape = struct.unpack(f'>{rank}I', content[4:start])
  expected = start + int(np.prod(shape, dtype=object))
  if len(content) != expected:
    raise UserError(
      f'{path}: {len(content):,} bytes where shape {shape} needs {expected:,}.'
    )
  array = np.frombuffer(content, np.uint8, offset=start).reshape(shape)
  return array, hashlib.sha256(content).hexdigest()


def _read_maybe_gzip(path: pathlib.Path) -> bytes:
  with open(path, 'rb') as raw:
    compressed = raw.read(2) == b'\x1f\x8b'
    raw.seek(0)
    stream = gzip.GzipFile(fileobj=raw) if compressed else raw
    try:
      content = stream.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
      raise UserError(f'{path} is truncated or damaged: {error}.') from error
  if len(content) > MAX_BYTES:
    raise UserError(f'{path} unpacks to more than {MAX_BYTES:,} bytes.')
  return content


def read_mat(path: pathlib.Path, names: Sequence[str]) -> dict[str, np.ndarray]:
  """Reads numeric variables of a MATLAB 5–7 file."""
  import scipy.io  # takes a while to import

  _check_mat_size(path)
  _try_mat(path)
  try:
    found = {name: kind for name, _, kind in scipy.io.whosmat(path)}
    missing = [name for name in names if name not in found]
    if not missing:
      arrays = scipy.io.loadmat(path, variable_names=list(names))
  except Exception as error:  # scipy raises nearly anything on damaged bytes
    raise UserError(
      f'{path} is truncated or not a MATLAB 5–7 file: {error}.'
    ) from error
  if missing:
    raise UserError(
      f'{path}: no variable {missing[0]!r}; there are {sorted(found)}.'
    )
  for name in names:
    if arrays[name].dtype.kind not in 'uif':
      raise UserError(f'{path}: the variable {name!r} is not numeric.')
  return {name: arrays[name] for name in names}


def _try_mat(path: pathlib.Path) -> None:
  """Has scipy read the file in another process, which some damage ends."""
  program = 'import sys, scipy.io; scipy.io.loadmat(sys.argv[1])'
  command = [sys.executable, '-c', program, str(path)]
  status = subprocess.run(command, capture_output=True).returncode
  if status < 0:
    name = signal.Signals(-status).name
    raise UserError(f'{path} is damaged: reading it ends in {name}.')


def _check_mat_size(path: pathlib.Path) -> None:
  """Unpacks the compressed variables piecemeal, to see how large they are."""
  total = 0
  with open(path, 'rb') as file:
    header = file.read(_MAT_HEADER)
    order = {b'IM': '<', b'MI': '>'}.get(header[126:128])
    if order is None or b'MATLAB 7.3' in header:
      raise UserError(
        f"{path} is not a MATLAB 5–7 file (save it with '-v7', not '-v7.3')."
      )
    while len(tag := file.read(8)) == 8:
      kind, size = struct.unpack(f'{order}2I', tag)
      if kind != _MAT_COMPRESSED:
        total += size
        file.seek(size, io.SEEK_CUR)
        continue
      inflate = zlib.decompressobj()
      while size > 0 and (packed := file.read(min(size, _CHUNK))):
        size -= len(packed)
        while packed and total <= MAX_BYTES:
          try:
            total += len(inflate.decompress(packed, 16 * _CHUNK))
          except zlib.error as error:
            raise UserError(f'{path} is damaged: {error}.') from error
          packed = inflate.unconsumed_tail
  if total > MAX_BYTES:
    raise UserError(f'{path} unpacks to more than {MAX_BYTES:,} bytes.')


def list_npz(path: pathlib.Path) -> list[str]:
  """Returns the names of the arrays in a `.npz` file."""
  with _open_npz(path) as archive:
    names = archive.namelist()
  return sorted(n.removesuffix('.npy') for n in names if n.endswith('.npy'))


def read_npz(
  path: pathlib.Path, names: Sequence[str], kinds: str = 'uif'
) -> dict[str, np.ndarray]:
  """Reads arrays of a `.npz` file; arrays of Python objects are refused.

  Args:
    path: the file.
    names: the arrays to read.
    kinds: NumPy's letters for the kinds of type that are allowed.
  """
  held = list_npz(path)
  missing = [name for name in names if name not in held]
  if missing:
    raise UserError(f'{path}: no array {missing[0]!r}; there are {held}.')
  with _open_npz(path) as archive:
    return {
      name: _read_npy(path, archive, f'{name}.npy', kinds) for name in names
    }


@contextlib.contextmanager
def _open_npz(path: pathlib.Path) -> Iterator[zipfile.ZipFile]:
  try:
    with zipfile.ZipFile(path) as archive:
      yield archive
  except (*archives.BROKEN, RuntimeError) as error:  # the latter: encrypted
    raise UserError(f'{path} is damaged or not a .npz: {error}.') from error


def _read_npy(
  path: pathlib.Path, archive: zipfile.ZipFile, name: str, kinds: str
) -> np.ndarray:
  info = archive.getinfo(name)
  if info.file_size > MAX_BYTES:
    raise UserError(
      f'{path}: {name} unpacks to {info.file_size:,} bytes; '
      f'{MAX_BYTES:,} are allowed.'
    )
  content = archive.read(info)
  try:
    return _parse_npy(content, kinds)
  except Exception as error:  # NumPy raises nearly anything on damaged headers
    raise UserError(f'{path}: {name} cannot be read: {error}.') from error


def _parse_npy(content: bytes, kinds: str) -> np.ndarray:
  # From memory of known size: a false shape in the header gets no allocation.
  stream = io.BytesIO(content)
  version = np.lib.format.read_magic(stream)
  if version == (1, 0):
    header = np.lib.format.read_array_header_1_0(stream)
  else:
    header = np.lib.format.read_array_header_2_0(stream)
  shape, fortran_order, dtype = header
  if dtype.hasobject or dtype.kind not in kinds:
    raise ValueError(f'arrays of type {dtype} are not read')
  array = np.frombuffer(content, dtype, offset=stream.tell())
  return array.reshape(shape, order='F' if fortran_order else 'C')
