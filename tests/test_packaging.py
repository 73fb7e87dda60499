"""What is installed: all packages, the configs, and a light import."""

import configparser
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import moda_jax

ROOT = pathlib.Path(__file__).parents[1]
BUILT_FROM = (
  'LICENSE',
  'README.md',
  'configs',
  'moda_jax',
  'pyproject.toml',
  'setup.cfg',
)


def read_options():
  parser = configparser.ConfigParser()
  parser.read(ROOT / 'setup.cfg')
  return parser['options']


def find_packages():
  """Returns the folders that hold Python files, as packages."""
  folders = {path.parent for path in (ROOT / 'moda_jax').rglob('*.py')}
  return {'.'.join(path.relative_to(ROOT).parts) for path in folders}


def run(arguments, cwd, **environment):
  ended = subprocess.run(
    [sys.executable, *arguments],
    cwd=cwd,
    env=os.environ | environment,
    capture_output=True,
    text=True,
  )
  assert ended.returncode == 0, ended.stdout + ended.stderr
  return ended.stdout


def test_every_package_is_installed():
  listed = read_options()['packages'].split()
  assert sorted(set(listed)) == sorted(listed)
  assert set(listed) == find_packages() | {'moda_jax.configs'}


def test_the_configs_are_installed_with_the_package():
  assert read_options()['package_dir'].split() == [
    'moda_jax.configs',
    '=',
    'configs',
  ]


def test_importing_the_package_imports_no_heavy_library():
  program = 'import sys, moda_jax; print(*sys.modules)'
  imported = set(run(['-c', program], cwd=ROOT).split())
  assert 'moda_jax' in imported
  heavy = {'jax', 'flax', 'optax', 'tensorflow', 'tensorflow_datasets', 'numpy'}
  assert imported & heavy == set()


@pytest.mark.parametrize(
  ('file', 'text'),
  [('CITATION.cff', '\nversion: {}\n'), ('CHANGELOG.md', '\n## [{}]')],
)
def test_files_name_the_version(file, text):
  assert text.format(moda_jax.__version__) in (ROOT / file).read_text()


@pytest.fixture(scope='module')
def installed(tmp_path_factory):
  """Returns a folder with the built wheel installed, without the clone."""
  folder = tmp_path_factory.mktemp('wheel')
  sources = folder / 'sources'
  sources.mkdir()
  for name in BUILT_FROM:
    path = ROOT / name
    if path.is_dir():
      ignore = shutil.ignore_patterns('__pycache__')
      shutil.copytree(path, sources / name, ignore=ignore)
    else:
      shutil.copy(path, sources / name)
  pip = ['-m', 'pip', '--quiet', '--disable-pip-version-check']
  build = ['wheel', '--no-deps', '--no-build-isolation', '-w', str(folder)]
  run([*pip, *build, str(sources)], cwd=folder)
  (wheel,) = folder.glob('*.whl')
  target = folder / 'installed'
  install = ['install', '--no-deps', '--target', str(target)]
  run([*pip, *install, str(wheel)], cwd=folder)
  return target


@pytest.mark.slow
def test_the_wheel_brings_the_configs(installed, tmp_path):
  program = (
    'import moda_jax\n'
    'from moda_jax.training import config_files\n'
    "config = moda_jax.get_config('digits:mnistm')\n"
    "assert config.data.sources == ('mnist', 'svhn', 'synth')\n"
    'import moda_jax.configs.digits as digits\n'
    'print(moda_jax.__file__, config_files.config_folder(), digits.__file__)'
  )
  output = run(['-c', program], cwd=tmp_path, PYTHONPATH=str(installed))
  package = installed / 'moda_jax'
  assert output.split() == [
    str(package / '__init__.py'),
    str(package / 'configs'),
    str(package / 'configs' / 'digits.py'),
  ]
  assert (package / 'py.typed').is_file()


@pytest.mark.slow
def test_the_wheel_brings_the_commands(installed, tmp_path):
  listed = run(
    ['-m', 'moda_jax.main', '--list'],
    cwd=tmp_path,
    PYTHONPATH=str(installed),
  )
  for name in (path.stem for path in (ROOT / 'configs').glob('[a-z]*.py')):
    assert f'\n  {name} ' in listed
