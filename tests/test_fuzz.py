"""Mutilated input gives a result or one clear error, and nothing else.

MODA_FUZZ_EXAMPLES sets how many inputs of each kind are tried; `make faults`
tries many, and other ones each time.
"""

import io
import json
import os
import pathlib
import tarfile
import tempfile
import zipfile

import hypothesis
import numpy as np
import pytest
import scipy.io
from hypothesis import strategies as st
from PIL import Image

import moda_jax
from moda_jax.data.read_files import read_arrays
from moda_jax.errors import UserError
from moda_jax.files import archives, images, raw_arrays
from moda_jax.training import options
from moda_jax.training.metrics_file import MetricsFile, read_metrics
from moda_jax.training.model import Inputs
from moda_jax.training.recorded import read_recorded, to_record

EXAMPLES = os.environ.get('MODA_FUZZ_EXAMPLES')
fuzz = hypothesis.settings(
  max_examples=int(EXAMPLES or 200),
  derandomize=EXAMPLES is None,  # the same inputs on every machine
  deadline=None,
  database=None,
  suppress_health_check=list(hypothesis.HealthCheck),
)
CONFIG = moda_jax.get_config('digits:mnistm')
LEAVES = [
  f'{section}.{leaf}'
  for section in ('data', 'views', 'network', 'objective', 'optimizer', 'run')
  for leaf in CONFIG[section]
]
VALUES = st.one_of(
  st.none(),
  st.booleans(),
  st.integers(),
  st.floats(),
  st.text(max_size=8),
  st.lists(st.text(max_size=3), max_size=3).map(tuple),
)


@st.composite
def mutilate(draw, data: bytes) -> bytes:
  """Bytes with some changed, left out at the end, or put in."""
  place = st.integers(0, len(data) - 1)
  for at, byte in draw(st.lists(st.tuples(place, st.integers(0, 255)))):
    data = data[:at] + bytes([byte]) + data[at + 1 :]
  if draw(st.booleans()):
    data = data[: draw(place)]
  if draw(st.booleans()):
    at = draw(st.integers(0, len(data)))
    data = data[:at] + draw(st.binary(max_size=20)) + data[at:]
  return data


def run(function, *values):
  """Calls a function that may refuse what it is given, in words."""
  try:
    return function(*values)
  except UserError as error:
    message = str(error)
    assert message.strip()
    assert 'Traceback' not in message
    return None


def run_on_file(function, name, data):
  """Calls it with the path of a file that holds the data."""
  with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, name)
    path.write_bytes(data)
    return run(function, path)


@fuzz
@hypothesis.given(
  st.lists(
    st.one_of(
      st.text(max_size=12),
      st.tuples(st.sampled_from(LEAVES), st.text(max_size=8)).map(
        lambda pair: f'{pair[0].split(".")[1]}={pair[1]}'
      ),
    ),
    max_size=4,
  )
)
def test_arguments_of_configs(pairs):
  config = run(moda_jax.get_config, ','.join(['digits:mnistm', *pairs]))
  if config is not None:
    run(options.check, config)


@fuzz
@hypothesis.given(st.sampled_from(LEAVES), VALUES)
def test_values_of_configs(leaf, value):
  section, name = leaf.split('.')
  config = CONFIG.copy_and_resolve_references()
  with config.unlocked(), config.ignore_type():
    config[section][name] = value
  run(options.check, config)


def encode(kind: str, mode: str = 'RGB') -> bytes:
  pixels = np.random.default_rng(0).integers(0, 256, (12, 9, 3), np.uint8)
  file = io.BytesIO()
  Image.fromarray(pixels).convert(mode).save(file, kind)
  return file.getvalue()


PICTURES = [encode(kind) for kind in ('JPEG', 'PNG', 'BMP', 'WEBP', 'TIFF')] + [
  encode('PNG', 'P'),
  encode('TIFF', 'CMYK'),
]


@fuzz
@hypothesis.given(st.sampled_from(PICTURES).flatmap(mutilate))
def test_bytes_of_pictures(data):
  picture = run(images.decode, data, 'x')
  if picture is not None:
    upright = images.to_rgb(images.turn_upright(picture))
    assert np.asarray(upright).shape[2] == 3


def save_npz(**arrays: np.ndarray) -> bytes:
  file = io.BytesIO()
  np.savez(file, **arrays)
  return file.getvalue()


ARRAYS = save_npz(images=np.zeros((3, 4, 4, 3), np.uint8), labels=np.arange(3))


@fuzz
@hypothesis.given(mutilate(ARRAYS))
def test_bytes_of_arrays(data):
  domain = run_on_file(lambda path: read_arrays('a', str(path)), 'a.npz', data)
  assert domain is None or domain.size == len(domain.inputs)


def save_mat() -> bytes:
  file = io.BytesIO()
  scipy.io.savemat(file, {'X': np.zeros((4, 4, 3, 2), np.uint8), 'y': [[1]]})
  return file.getvalue()


IDX = b'\0\0\x08\x03' + b'\0\0\0\x02' * 3 + bytes(8)


@fuzz
@hypothesis.given(mutilate(IDX))
def test_bytes_of_mnist(data):
  run_on_file(raw_arrays.read_idx, 'a-ubyte', data)


@pytest.mark.slow
@hypothesis.settings(fuzz, max_examples=int(EXAMPLES or 200) // 10)
@hypothesis.given(mutilate(save_mat()))
def test_bytes_of_matlab(data):
  run_on_file(lambda path: raw_arrays.read_mat(path, 'Xy'), 'a.mat', data)


def pack(kind: str) -> bytes:
  file = io.BytesIO()
  if kind == 'zip':
    with zipfile.ZipFile(file, 'w', zipfile.ZIP_DEFLATED) as packed:
      packed.writestr('a/b.txt', 'some words ' * 9)
  else:
    with tarfile.open(fileobj=file, mode=f'w:{kind}') as packed:
      member = tarfile.TarInfo('a/b.txt')
      member.size = 11
      packed.addfile(member, io.BytesIO(b'some words '))
  return file.getvalue()


@pytest.mark.parametrize('suffix', ['zip', 'tar', 'tar.gz'])
def test_bytes_of_archives(suffix):
  whole = pack({'zip': 'zip', 'tar': '', 'tar.gz': 'gz'}[suffix])

  def read_all(path):
    return [member.read() for member in archives.iter_members(path)]

  @fuzz
  @hypothesis.given(mutilate(whole))
  def try_one(data):
    run_on_file(read_all, f'a.{suffix}', data)

  try_one()


LINES = b''.join(
  json.dumps({'step': step, 'loss': 1 / step}).encode() + b'\n'
  for step in range(1, 9)
)


@fuzz
@hypothesis.given(mutilate(LINES), st.integers(0, 9))
def test_metrics_of_a_run(data, step):
  with tempfile.TemporaryDirectory() as folder:
    pathlib.Path(folder, 'metrics.jsonl').write_bytes(data)
    if run(read_metrics, folder) is None:
      return
    run(MetricsFile(folder).prepare, step)
    steps = [line['step'] for line in read_metrics(folder)]
    assert steps == sorted(set(steps))
    assert all(there <= step for there in steps)


RECORD = json.dumps(
  to_record(
    options.prune(CONFIG.copy_and_resolve_references()),
    {},
    Inputs((32, 32, 3), ('0', '1')),
  )
).encode()


@fuzz
@hypothesis.given(mutilate(RECORD))
def test_the_record_of_a_run(data):
  with tempfile.TemporaryDirectory() as folder:
    pathlib.Path(folder, 'config.json').write_bytes(data)
    found = run(read_recorded, folder)
    if found is not None:
      run(options.check, found.config)
