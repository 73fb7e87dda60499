"""Files of weights that are damaged, hostile or of another kind."""

import json
import os
import pickle
import zipfile

import h5py
import made_up_files
import numpy as np
import pytest
from weight_writers import KERAS, WRITERS, View, tfjs_files, write_pth

from moda_jax.errors import UserError
from moda_jax.files import weight_files
from moda_jax.models import published_weights as pretrained


class _Evil:
  """Leaves a file behind when unpickled."""

  def __init__(self, function, *arguments):
    self.call = function, arguments

  def __reduce__(self):
    return self.call


@pytest.mark.parametrize('function', [open, os.mkdir, eval, getattr])
def test_a_pickle_that_calls_anything_is_refused_and_not_run(
  tmp_path, function
):
  trace = tmp_path / 'trace'
  arguments = {
    open: (str(trace), 'w'),
    os.mkdir: (str(trace),),
    eval: (f'open({str(trace)!r}, "w")',),
    getattr: ('', 'join'),
  }[function]
  write_pth(tmp_path / 'x.pth', {'conv1.weight': _Evil(function, *arguments)})
  with pytest.raises(UserError, match=f'{function.__name__} is not allowed'):
    weight_files.read_weights(tmp_path / 'x.pth')
  assert not trace.exists()


def test_a_tensor_cannot_look_beyond_its_storage(tmp_path):
  write_pth(tmp_path / 'x.pth', {'a': np.zeros(4, np.float32)}, {'0': b'1234'})
  with pytest.raises(UserError, match=r'data/0 has 1 values, not 4'):
    weight_files.read_weights(tmp_path / 'x.pth')
  for shape, strides in (
    ((5,), (1,)),
    ((2, 2), (3, 1)),
    ((2,), (-1,)),
    ((10**6,), (0,)),
    ((-1,), (1,)),
    ((0, 9), (1, 9)),
    ((2, 2), (1,)),
  ):
    view = View(np.zeros(4, np.float32), shape, strides)
    write_pth(tmp_path / 'x.pth', {'a': view})
    with pytest.raises(UserError, match=r'x\.pth cannot be read'):
      weight_files.read_weights(tmp_path / 'x.pth')


def test_a_tensor_is_no_storage_of_another(tmp_path):
  inner = View(np.zeros(16, np.float32), (4, 4), (4, 1))
  write_pth(tmp_path / 'x.pth', {'a': View(inner, (12,), (1,), offset=3)})
  with pytest.raises(UserError, match=r'shape \(12,\) exceeds its storage'):
    weight_files.read_weights(tmp_path / 'x.pth')


def test_other_pth_files_are_refused(tmp_path):
  path = tmp_path / 'x.pth'
  path.write_bytes(pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2))
  with pytest.raises(UserError, match=r'before PyTorch 1\.6'):
    weight_files.read_weights(path)
  write_pth(path, {'state_dict': {'a': np.zeros(1, np.float32)}, 'epoch': 3})
  with pytest.raises(UserError, match='something other than a state dict'):
    weight_files.read_weights(path)
  with zipfile.ZipFile(path, 'w') as archive:
    archive.writestr('a/b', 'c')
  with pytest.raises(UserError, match=r'no data\.pkl'):
    weight_files.read_weights(path)


def test_a_cut_file_of_any_kind_is_refused(tmp_path):
  for kind in ('pth', 'safetensors', 'h5 weights', 'tfjs package'):
    path = WRITERS[kind](tmp_path)
    whole = path.read_bytes()
    for length in (0, 6, 100, len(whole) // 2, len(whole) - 3000):
      path.write_bytes(whole[:length])
      with pytest.raises(UserError, match=path.name):
        weight_files.read_weights(path)


@pytest.mark.parametrize(
  ('entry', 'message'),
  [
    ({'data_offsets': [0, 12]}, 'a lies beyond the end'),
    ({'data_offsets': [-8, 8]}, 'a lies beyond the end'),
    ({'data_offsets': [4, 8]}, r'a of shape \[2\] has 4 bytes'),
    ({'shape': [-2]}, 'a of shape'),
    ({'shape': 'x'}, 'damaged or of another kind'),
    ({'dtype': 'F8_E4M3'}, "unknown or missing 'F8_E4M3'"),
    ({'data_offsets': None}, 'damaged or of another kind'),
  ],
)
def test_a_false_safetensors_header_is_refused(tmp_path, entry, message):
  entry = {'dtype': 'F32', 'shape': [2], 'data_offsets': [0, 8]} | entry
  header = json.dumps({'a': entry}).encode()
  path = tmp_path / 'x.safetensors'
  path.write_bytes(len(header).to_bytes(8, 'little') + header + bytes(8))
  with pytest.raises(UserError, match=message):
    weight_files.read_weights(path)


def test_a_damaged_tensorflow_js_model_is_refused(tmp_path):
  shard = 'package/ResNet50/group1-shard2of3.bin'
  model = 'package/ResNet50/model.json'
  whole = tfjs_files(KERAS)
  cases = {
    'the shard group1-shard2of3.bin is not there': {shard: None},
    'fc1000/bias of shape': {shard: whole[shard][:-4]},
    'bytes, not': {shard: whole[shard] + bytes(4)},
    'one model.json is needed, there are 0': {model: None},
    'one model.json is needed, there are 2': {'model.json': b'{}'},
    "unknown or missing 'weightsManifest'": {model: b'{}'},
    'Expecting value': {model: b'model'},
    'maximum recursion': {model: b'[' * 100_000},
    'is quantized': tfjs_files(KERAS, quantization={'dtype': 'uint8'}),
  }
  for i, (message, change) in enumerate(cases.items()):
    files = {k: v for k, v in (whole | change).items() if v is not None}
    path = made_up_files.pack(files, 'folder', tmp_path, f'case{i}')
    with pytest.raises(UserError, match=message):
      weight_files.read_weights(path)


def test_a_folder_called_model_json_is_no_model(tmp_path):
  (tmp_path / 'model.json').mkdir()
  for path in (tmp_path, tmp_path / 'model.json'):
    with pytest.raises(UserError, match='is needed, there are 0'):
      weight_files.read_weights(path)


def test_h5_files_that_name_no_layers_or_lead_elsewhere_are_refused(tmp_path):
  path = tmp_path / 'x.h5'
  with h5py.File(path, 'w') as file:
    file['layers/conv2d/vars/0'] = np.zeros(3)
  with pytest.raises(UserError, match='names no layers'):
    weight_files.read_weights(path)
  secret = tmp_path / 'secret'
  secret.write_bytes(bytes(12))
  with h5py.File(path, 'w') as file:
    file.create_dataset(
      'conv1/kernel', (3,), 'f4', external=[(str(secret), 0, 12)]
    )
  with pytest.raises(UserError, match='in another file'):
    weight_files.read_weights(path)


def test_files_of_no_known_kind_are_refused(tmp_path):
  (tmp_path / 'x.onnx').write_bytes(b'')
  with pytest.raises(UserError, match=r'\.pth, \.pt, \.safetensors'):
    weight_files.read_weights(tmp_path / 'x.onnx')
  with pytest.raises(UserError, match=r'gone\.pth: no such file'):
    weight_files.read_weights(tmp_path / 'gone.pth')
  with pytest.raises(UserError, match='the folder to write it to'):
    pretrained.convert_file(tmp_path / 'x.pth', tmp_path / 'gone' / 'x.npz')
