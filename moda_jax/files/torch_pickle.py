"""PyTorch's `.pth` files without PyTorch, and without running their pickles."""

import collections
import io
import math
import pathlib
import pickle
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from moda_jax.errors import UserError
from moda_jax.files import archives

_STORAGES = {
  'FloatStorage': '<f4',
  'HalfStorage': '<f2',
  'DoubleStorage': '<f8',
  'LongStorage': '<i8',
}


def read_pth(path: pathlib.Path) -> dict[str, np.ndarray]:
  """Reads a state dict that `torch.save` wrote."""
  if not zipfile.is_zipfile(path):
    raise UserError(
      f'{path} is damaged, or of the format before PyTorch 1.6. Load it with '
      'PyTorch and save it again, by torch.save or as .safetensors.'
    )
  members = {m.name: m.read() for m in archives.iter_members(path)}
  found = [name for name in members if name.endswith('/data.pkl')]
  if len(found) != 1:
    raise UserError(f'{path} was not written by torch.save: no data.pkl.')
  folder = found[0].removesuffix('/data.pkl')
  if members.get(f'{folder}/byteorder', b'little') != b'little':
    raise UserError(f'{path}: only little-endian files are read.')
  try:
    arrays = _TensorUnpickler(members, folder).load()
  except Exception as error:  # a pickle can fail in any way
    raise UserError(f'{path} cannot be read: {error}.') from error
  if not isinstance(arrays, dict) or not all(
    isinstance(k, str) and isinstance(v, np.ndarray) for k, v in arrays.items()
  ):
    raise UserError(
      f"{path} holds something other than a state dict; save the model's "
      'state_dict() alone.'
    )
  return dict(arrays)


class _TensorUnpickler(pickle.Unpickler):
  """Makes arrays of tensors; refuses every name that is not needed for that."""

  def __init__(self, members: dict[str, bytes], folder: str):
    super().__init__(io.BytesIO(members[f'{folder}/data.pkl']))
    self._members = members
    self._folder = folder

  def find_class(self, module: str, name: str) -> Any:
    """See the base class; nothing is imported."""
    if (module, name) == ('collections', 'OrderedDict'):
      return collections.OrderedDict
    if (module, name) == ('torch._utils', '_rebuild_tensor_v2'):
      return _rebuild_tensor
    if (module, name) == ('torch._utils', '_rebuild_parameter'):
      return _rebuild_parameter
    if module == 'torch' and name in _STORAGES:
      return _STORAGES[name]
    raise pickle.UnpicklingError(f'{module}.{name} is not allowed in it')

  def persistent_load(self, pid: Any) -> np.ndarray:
    """The storage that tensors are views of, a member of the archive."""
    kind, dtype, key, _, count = pid
    name = f'{self._folder}/data/{key}'
    if kind != 'storage' or name not in self._members:
      raise pickle.UnpicklingError(f'there is no {kind} {name}')
    storage = np.frombuffer(self._members[name], dtype)
    if storage.size != count:
      raise pickle.UnpicklingError(
        f'{name} has {storage.size:,} values, not {count:,}'
      )
    return storage


def _rebuild_parameter(tensor: np.ndarray, *_: Any) -> np.ndarray:
  """A parameter is its tensor; older files have these in state dicts."""
  return tensor


def _rebuild_tensor(
  storage: np.ndarray,
  offset: int,
  shape: Sequence[int],
  strides: Sequence[int],
  *_: Any,
) -> np.ndarray:
  """A copy of the part of `storage` that a tensor is, all within its end."""
  last = offset + sum(
    (size - 1) * stride for size, stride in zip(shape, strides, strict=True)
  )
  if (
    storage.ndim != 1  # else a tensor, of which offsets count rows
    or offset < 0
    or any(size < 1 for size in shape)
    or any(stride < 0 for stride in strides)
    or last >= storage.size
    or math.prod(shape) > storage.size
  ):
    raise ValueError(f'a tensor of shape {tuple(shape)} exceeds its storage')
  steps = [stride * storage.itemsize for stride in strides]
  view = np.lib.stride_tricks.as_strided(storage[offset:], shape, steps)
  return np.array(view)
