"""Files of weights, made up, in the formats in which people have them."""

import collections
import dataclasses
import io
import json
import pickle
import sys
import types
import zipfile

import h5py
import made_up_files
import numpy as np
import pytest
import resnet_twin

TORCHVISION = resnet_twin.torchvision_arrays()
KERAS = resnet_twin.keras_arrays()


@dataclasses.dataclass
class View:
  """A tensor, which may claim more than its storage has."""

  array: 'np.ndarray | View'  # no storage is a tensor, but files may lie
  shape: tuple[int, ...]
  strides: tuple[int, ...]
  offset: int = 0


@dataclasses.dataclass
class Parameter:
  """A wrapped tensor, as in old state dicts."""

  array: np.ndarray


def _make_modules():
  """Makes empty stand-ins for the names that `torch.save` refers to."""
  torch, utils = types.ModuleType('torch'), types.ModuleType('torch._utils')
  for name in ('FloatStorage', 'LongStorage'):
    setattr(torch, name, type(name, (), {'__module__': 'torch'}))
  for name in ('_rebuild_tensor_v2', '_rebuild_parameter'):
    function = types.FunctionType((lambda: None).__code__, {}, name)
    function.__module__, function.__qualname__ = 'torch._utils', name
    setattr(utils, name, function)
  return torch, utils


def _dump(state):
  """Returns the pickle of `torch.save`, and the storages that it leaves out."""
  torch, utils = _make_modules()
  members = {}

  class Storage:
    def __init__(self, array):
      self.array = array

  class Pickler(pickle.Pickler):
    def persistent_id(self, value):
      if not isinstance(value, Storage):
        return None
      key = str(len(members))
      members[key] = value.array.tobytes()
      kind = 'LongStorage' if value.array.dtype == int else 'FloatStorage'
      kind = getattr(torch, kind)
      return ('storage', kind, key, 'cpu', value.array.size)

    def reducer_override(self, value):
      if isinstance(value, Parameter):
        arguments = (value.array, True, collections.OrderedDict())
        return utils._rebuild_parameter, arguments
      if isinstance(value, np.ndarray):
        strides = tuple(s // value.itemsize for s in value.strides)
        value = View(np.ravel(value, order='K'), value.shape, strides)
      if not isinstance(value, View):
        return NotImplemented
      is_view = isinstance(value.array, View)
      storage = value.array if is_view else Storage(value.array)
      arguments = (storage, value.offset, value.shape, value.strides, False)
      return utils._rebuild_tensor_v2, (*arguments, collections.OrderedDict())

  content = io.BytesIO()
  with pytest.MonkeyPatch.context() as patch:
    patch.setitem(sys.modules, 'torch', torch)
    patch.setitem(sys.modules, 'torch._utils', utils)
    Pickler(content, protocol=2).dump(state)
  return content.getvalue(), members


def write_pth(path, state, storages=None):
  """Writes what `torch.save` writes."""
  content, members = _dump(state)
  with zipfile.ZipFile(path, 'w') as archive:
    archive.writestr('resnet50/data.pkl', content)
    archive.writestr('resnet50/byteorder', 'little')
    for key, data in (members | (storages or {})).items():
      archive.writestr(f'resnet50/data/{key}', data)
    archive.writestr('resnet50/version', '3\n')


def write_state_dict(path, arrays):
  """Writes the attribute that state dicts have, and one transposed tensor."""
  state = collections.OrderedDict(arrays)
  if isinstance(state['fc.weight'], np.ndarray):
    state['fc.weight'] = np.asfortranarray(state['fc.weight'])
  state._metadata = {'': {'version': 1}}
  write_pth(path, state)
  return path


def write_old_state_dict(path, arrays):
  """Writes parameters for weights, without the count of batches."""
  return write_state_dict(
    path,
    {
      name: array if 'running' in name else Parameter(array)
      for name, array in arrays.items()
      if not name.endswith('num_batches_tracked')
    },
  )


def write_safetensors(path, arrays):
  types_ = {'float32': 'F32', 'int64': 'I64'}
  header, data = {'__metadata__': {'format': 'pt'}}, b''
  for name, array in arrays.items():
    end = len(data) + array.nbytes
    header[name] = {
      'dtype': types_[str(array.dtype)],
      'shape': array.shape,
      'data_offsets': [len(data), end],
    }
    data += array.tobytes()
  header = json.dumps(header).encode()
  path.write_bytes(len(header).to_bytes(8, 'little') + header + data)
  return path


def write_h5(path, arrays, form='{layer}/{layer}/{array}:0'):
  with h5py.File(path, 'w') as file:
    for name, array in arrays.items():
      layer, kind = name.split('/')
      file[form.format(layer=layer, array=kind)] = array
  return path


def write_keras_1(path, arrays):
  old = {
    'kernel': 'W',
    'bias': 'b',
    'moving_mean': 'running_mean',
    'moving_variance': 'running_std',
  }
  renamed = {}
  for name, array in arrays.items():
    layer, kind = resnet_twin.old_keras_name(name).split('/')
    renamed[f'{layer}/{old.get(kind, kind)}'] = array
  return write_h5(path, renamed, '{layer}/{layer}_{array}:0')


def tfjs_files(arrays, shards=3, **changes):
  """Returns {path: bytes} of an npm package."""
  entries = [
    {
      'name': resnet_twin.old_keras_name(name),
      'shape': array.shape,
      'dtype': 'float32',
    }
    | changes
    for name, array in arrays.items()
  ]
  data = b''.join(array.tobytes() for array in arrays.values())
  size = -(-len(data) // shards)
  names = [f'group1-shard{i + 1}of{shards}.bin' for i in range(shards)]
  manifest = [{'paths': names, 'weights': entries}]
  files = {
    f'package/ResNet50/{name}': data[i * size : (i + 1) * size]
    for i, name in enumerate(names)
  }
  model = json.dumps({'format': 'layers-model', 'weightsManifest': manifest})
  files['package/ResNet50/model.json'] = model.encode()
  return files | {'package/package.json': b'{}'}


def write_tfjs(place, packing='folder'):
  files = tfjs_files(KERAS)
  return made_up_files.pack(files, packing, place, 'resnet')


WRITERS = {
  'pth': lambda place: write_state_dict(place / 'resnet50.pth', TORCHVISION),
  'old pth': lambda place: write_old_state_dict(
    place / 'resnet50-old.pth', TORCHVISION
  ),
  'safetensors': lambda place: write_safetensors(
    place / 'model.safetensors', TORCHVISION
  ),
  'h5 weights': lambda place: write_h5(place / 'resnet50.h5', KERAS),
  'h5 model': lambda place: write_h5(
    place / 'model.h5', KERAS, 'model_weights/{layer}/{layer}/{array}'
  ),
  'Keras 1': lambda place: write_keras_1(place / 'old.h5', KERAS),
  'tfjs folder': write_tfjs,
  'tfjs model': lambda place: (
    write_tfjs(place) / 'package' / 'ResNet50' / 'model.json'
  ),
  'tfjs package': lambda place: write_tfjs(place, 'tar.gz'),
}
