"""The notebooks: their badges, their size, and that every cell runs."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from experiments import badges

NOTEBOOKS = sorted(badges.NOTEBOOKS.glob('*.ipynb'))
by_name = pytest.mark.parametrize('path', NOTEBOOKS, ids=lambda path: path.stem)


def read_cells(path, kind='code'):
  content = json.loads(path.read_text())
  return [
    ''.join(cell['source'])
    for cell in content['cells']
    if cell['cell_type'] == kind
  ]


def test_all_are_there():
  assert [path.stem for path in NOTEBOOKS] == [
    'own_photographs',
    'paper',
    'quickstart',
    'source_weights',
  ]


@by_name
def test_badge_and_install_cell_have_the_address_of_the_repository(path):
  address = badges.find_address()
  text = path.read_text()
  assert badges.set_address(text, address) == text
  assert (
    badges.make_badge(address, path.stem) in read_cells(path, 'markdown')[0]
  )
  assert f"REPOSITORY = '{address}'" in read_cells(path)[0]
  moved = badges.set_address(text, 'https://github.com/some/where')
  assert address.removeprefix('https://github.com/') not in moved
  assert moved.count('some/where') == 2


@by_name
def test_the_readme_has_its_badge(path):
  badge = badges.make_badge(badges.find_address(), path.stem)
  assert badge in badges.README.read_text()


@by_name
def test_the_install_cell_replaces_nothing_that_colab_brings(path):
  install = read_cells(path)[0]
  assert "kept = ('jax', 'jaxlib', 'tensorflow', 'numpy')" in install
  assert '--no-deps' in install
  assert 'tensorflow-cpu' not in install


@by_name
def test_stored_outputs_are_there_small_and_without_errors(path):
  assert path.stat().st_size < 400_000
  content = json.loads(path.read_text())
  outputs = [
    output for cell in content['cells'] for output in cell.get('outputs', [])
  ]
  assert outputs
  assert all(output['output_type'] != 'error' for output in outputs)
  # A path of whose machine it ran on; Colab's own begin with /content.
  assert not re.search(r'["\s\'(]/(?!content\b)\w+/\w', path.read_text())


@pytest.mark.slow
@by_name
def test_every_cell_runs(path, tmp_path, mini_data_dir):
  """At a tiny scale, by nbmake, in a folder of its own."""
  pytest.importorskip('nbmake')
  shutil.copy(path, tmp_path)
  environment = os.environ | {
    'MODA_JAX_QUICK': '1',
    'TFDS_DATA_DIR': str(mini_data_dir),
    'PYTHONPATH': str(badges.ROOT),
    # One device, as a laptop has, rather than the tests' eight.
    'XLA_FLAGS': '--xla_backend_optimization_level=0',
  }
  ended = subprocess.run(
    [
      sys.executable,
      *('-m', 'pytest', '--nbmake', '--nbmake-timeout=1500', '-q'),
      *('-p', 'no:cacheprovider', '-n', '0', '--rootdir', str(tmp_path)),
      *('-c', os.devnull, path.name),
    ],
    cwd=tmp_path,
    env=environment,
    capture_output=True,
    text=True,
  )
  assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-500:]
  assert pathlib.Path(tmp_path, 'runs').is_dir()
