"""What importing the package does, and how `tfds build` finds a builder."""

import subprocess
import sys

import made_up_files
import pytest
import tensorflow_datasets as tfds

NAMES = (
  'amazon_reviews',
  'mini_digits',
  'mnist_idx',
  'mnist_m',
  'office31',
  'svhn_mat',
  'synth_digits',
)


def _run(program, *arguments, cwd=made_up_files.ROOT, **environment):
  return subprocess.run(
    [sys.executable, '-c', program, *map(str, arguments)],
    capture_output=True,
    text=True,
    cwd=cwd,
    check=False,
    env={'PATH': '', 'PYTHONPATH': str(made_up_files.ROOT)} | environment,
  )


def test_all_are_registered():
  for name in NAMES:
    assert tfds.builder_cls(name).name == name


def test_importing_is_light():
  program = """
import sys, moda_jax.datasets
heavy = ('tensorflow', 'jax', 'scipy', 'matplotlib', 'sklearn', 'pandas')
print([name for name in heavy if name in sys.modules])
"""
  done = _run(program)
  assert (done.stdout, done.stderr) == ('[]\n', '')


@pytest.mark.parametrize('name', NAMES)
def test_tfds_build_finds_it_by_its_folder(name):
  """As `tfds build <folder>` does: the folder's parent on the path."""
  program = """
import sys
import tensorflow_datasets as tfds
name = sys.argv[1]
with tfds.core.utils.add_sys_path('moda_jax/datasets'):
  builder_cls = tfds.core.community.builder_cls_from_module(
    f'{name}.{name}_dataset_builder'
  )
print(builder_cls.name)
"""
  done = _run(program, name)
  assert done.stdout == f'{name}\n', done.stderr


@pytest.mark.slow
def test_tfds_build_prepares(tmp_path):
  """The command `tfds` itself does not start without Apache Beam."""
  program = """
import sys
from tensorflow_datasets.scripts.cli import build, cli_utils
cli_utils.make_flags_parser(build.Args, '')(sys.argv).execute()
"""
  made_up_files.write_reviews(tmp_path / 'amazon.npz')
  done = _run(
    program,
    'moda_jax/datasets/amazon_reviews',
    '--config=dvd',
    f'--manual_dir={tmp_path}',
    f'--data_dir={tmp_path / "data"}',
  )
  assert done.returncode == 0, done.stderr
  loaded = tfds.load(
    'amazon_reviews/dvd', split='all', data_dir=tmp_path / 'data'
  )
  assert len(loaded) == 3


@pytest.mark.slow
def test_reading_is_silent_and_asks_no_network(tmp_path):
  """Standard error stays empty, and any connection would raise."""
  made_up_files.write_reviews(tmp_path / 'amazon.npz')
  made_up_files.build('amazon_reviews/dvd', tmp_path, tmp_path / 'data')
  program = """
import socket, sys

def refuse(*args, **kwargs):
  raise AssertionError(f'network use: {args}')

socket.socket.connect = socket.socket.connect_ex = refuse
socket.getaddrinfo = refuse
import tensorflow_datasets as tfds
import moda_jax.datasets

tfds.core.utils.gcs_utils.exists = refuse
loaded = tfds.load('amazon_reviews/dvd', split='all', data_dir=sys.argv[1])
print(len(list(loaded)))
"""
  done = _run(program, tmp_path / 'data')
  assert (done.stdout, done.stderr) == ('3\n', '')
