"""Arrays by name from published files of weights, of unknown origin.

Nothing in such a file is executed, and the sizes that it states are checked
before they are used. A fault is a `UserError` that names the file.
"""

import json
import math
import pathlib
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from moda_jax.errors import UserError
from moda_jax.files import archives
from moda_jax.files.torch_pickle import read_pth

Arrays = dict[str, np.ndarray]
# What reading made-up JSON can end in.
_FAULTS = (ValueError, KeyError, TypeError, AttributeError, RecursionError)

MAX_BYTES = 2**30  # ResNet-50 has 0.1 GB

_SAFETENSORS_TYPES = {'F32': '<f4', 'F16': '<f2', 'F64': '<f8', 'I64': '<i8'}
_KERAS_1_NAMES = {
  'W': 'kernel',
  'b': 'bias',
  'running_mean': 'moving_mean',
  'running_std': 'moving_variance',  # which it is in spite of its name
}
_TFJS_MODEL = 'model.json'
_TFJS_SHARD = re.compile(r'group\d+-shard\d+of\d+(\.bin)?')


def read_weights(path: pathlib.Path) -> Arrays:
  """Reads the arrays of a file, whose kind follows from its name."""
  if not path.exists():
    raise UserError(f'{path}: no such file or folder.')
  if path.is_dir() or path.name == _TFJS_MODEL:
    return read_tfjs(path)
  for suffixes, read in _READERS.items():
    if path.name.lower().endswith(suffixes):
      return read(path)
  known = ', '.join(PUBLISHED)
  raise UserError(
    f'{path} is not of a kind that is read: {known}, {_TFJS_MODEL} of '
    'TensorFlow.js or its folder.'
  )


def read_safetensors(path: pathlib.Path) -> Arrays:
  """Reads a `.safetensors` file: a length, a header in JSON, the arrays."""
  content = _read_bytes(path)
  length = int.from_bytes(content[:8], 'little')
  header, data = content[8 : 8 + length], content[8 + length :]
  if len(content) < 8 or len(header) < length:
    raise UserError(f'{path} is cut off, or not a .safetensors file.')
  arrays = {}
  try:
    entries = json.loads(header)
    entries.pop('__metadata__', None)
    for name, entry in entries.items():
      begin, end = entry['data_offsets']
      if not 0 <= begin <= end <= len(data):
        raise ValueError(f'{name} lies beyond the end')
      dtype = _SAFETENSORS_TYPES[entry['dtype']]
      arrays[name] = _make_array(name, data[begin:end], dtype, entry['shape'])
  except _FAULTS as error:
    raise _damaged(path, error) from error
  return arrays


def read_h5(path: pathlib.Path) -> Arrays:
  """Reads a Keras model or its weights from HDF5, as `layer/array`."""
  try:
    import h5py
  except ImportError as error:
    raise UserError(
      f'{path}: to read it, install h5py (pip install h5py).'
    ) from error
  arrays = {}

  def add(name: str, item: Any) -> None:
    parts = name.removeprefix('model_weights/').split('/')
    layer, last = parts[0], parts[-1]
    if not isinstance(item, h5py.Dataset) or layer == 'optimizer_weights':
      return
    if 'vars' in parts:
      raise ValueError("a .weights.h5 names no layers; use model.save('x.h5')")
    if item.external or item.is_virtual or item.nbytes > MAX_BYTES:
      raise ValueError(f'{name} is too large or in another file')
    last = last.removesuffix(':0').removeprefix(f'{layer}_')
    arrays[f'{layer}/{_KERAS_1_NAMES.get(last, last)}'] = item[()]

  try:
    with h5py.File(path, 'r') as file:
      file.visititems(add)
  except (OSError, RuntimeError, ValueError, KeyError, TypeError) as error:
    raise _damaged(path, error) from error
  return arrays


def read_tfjs(path: pathlib.Path) -> Arrays:
  """Reads a TensorFlow.js layers model.

  Args:
    path: `model.json`, its folder, or an archive such as an npm package; the
      shards are next to it.
  """
  files = _read_tfjs_files(path)
  models = [f for f in files if pathlib.PurePosixPath(f).name == _TFJS_MODEL]
  if len(models) != 1:
    raise UserError(
      f'{path}: one {_TFJS_MODEL} is needed, there are {len(models)}.'
    )
  folder = pathlib.PurePosixPath(models[0]).parent
  arrays: Arrays = {}
  try:
    for group in json.loads(files[models[0]])['weightsManifest']:
      missing = [p for p in group['paths'] if str(folder / p) not in files]
      if missing:
        raise ValueError(f'the shard {missing[0]} is not there')
      shards = [files[str(folder / shard)] for shard in group['paths']]
      arrays |= _split_tfjs_group(b''.join(shards), group['weights'])
  except _FAULTS as error:
    raise _damaged(path, error) from error
  return arrays


def _read_tfjs_files(path: pathlib.Path) -> dict[str, bytes]:
  def wanted(name: str) -> bool:
    return name == _TFJS_MODEL or _TFJS_SHARD.fullmatch(name) is not None

  if path.name == _TFJS_MODEL and path.is_file():
    near = path.parent.iterdir()
    beside = [p for p in near if wanted(p.name) and p.is_file()]
    return {p.name: _read_bytes(p) for p in beside}
  return {
    member.name: member.read()
    for member in archives.iter_members(path)
    if wanted(member.parts[-1])
  }


def _split_tfjs_group(data: bytes, entries: Sequence[dict[str, Any]]) -> Arrays:
  arrays, start = {}, 0
  for entry in entries:
    name, dtype = entry['name'], entry['dtype']
    if dtype != 'float32' or 'quantization' in entry:
      raise ValueError(f'{name} is quantized or not of float32')
    end = start + 4 * math.prod(entry['shape'])
    arrays[name] = _make_array(name, data[start:end], '<f4', entry['shape'])
    start = end
  if start != len(data):
    raise ValueError(f'its shards have {len(data):,} bytes, not {start:,}')
  return arrays


def _make_array(
  name: str, data: bytes, dtype: str, shape: Sequence[int]
) -> np.ndarray:
  if len(data) != math.prod(shape) * np.dtype(dtype).itemsize:
    raise ValueError(f'{name} of shape {shape} has {len(data):,} bytes')
  return np.frombuffer(data, dtype).reshape(shape)


def _read_bytes(path: pathlib.Path) -> bytes:
  if path.stat().st_size > MAX_BYTES:
    raise UserError(f'{path} is larger than {MAX_BYTES:,} bytes.')
  return path.read_bytes()


def _damaged(path: pathlib.Path, error: Exception) -> UserError:
  reason = f'unknown or missing {error}' if type(error) is KeyError else error
  return UserError(f'{path} is damaged or of another kind: {reason}.')


_READERS: dict[tuple[str, ...], Callable[[pathlib.Path], Arrays]] = {
  ('.pth', '.pt'): read_pth,
  ('.safetensors',): read_safetensors,
  ('.h5', '.hdf5'): read_h5,
  ('.tgz', '.tar.gz'): read_tfjs,
}
# The endings of files that are to be converted.
PUBLISHED = tuple(suffix for suffixes in _READERS for suffix in suffixes)
