"""Set-up of all tests: CPU, eight virtual devices, no network."""

import collections
import gc
import logging
import os
import pathlib
import socket
import sys

import pytest
from absl import flags

_HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(_HERE / name) for name in ('', 'objectives', 'selection')]
# Before JAX starts. Tests that want one device take the first. Programs are
# small and run once or twice: compiling them is what takes the time.
os.environ['JAX_PLATFORMS'] = 'cpu'
_FLAGS = (
  '--xla_force_host_platform_device_count=8',
  '--xla_backend_optimization_level=0',
)
_flags = os.environ.get('XLA_FLAGS', '').split()  # xdist's workers have ours
_flags += [flag for flag in _FLAGS if flag not in _flags]
os.environ['XLA_FLAGS'] = ' '.join(_flags)
# The same small programs are compiled by many tests.
os.environ.setdefault('JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS', '0.1')
os.environ.setdefault('JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES', '-1')
os.environ.setdefault(
  'JAX_COMPILATION_CACHE_DIR',
  str(_HERE.parent / '.pytest_cache' / 'compiled'),
)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter):
  """Says in one line how many tests were skipped for which reason."""
  reports = terminalreporter.getreports('skipped')
  reasons = collections.Counter(
    report.longrepr[2].removeprefix('Skipped: ') for report in reports
  )
  if reasons:
    parts = [f'{n} ({reason})' for reason, n in reasons.most_common()]
    terminalreporter.write_line(f'skipped: {", ".join(parts)}')


@pytest.fixture(scope='module', autouse=True)
def _drop_compiled_programs():
  """Frees what a file compiled, for the next file to have room.

  Every program on CPUs takes dozens of memory maps, and Linux gives a process
  65,530 of them: beyond, compiling fails or ends the process.
  """
  yield
  import jax

  jax.clear_caches()
  gc.collect()


@pytest.fixture(autouse=True)
def _restore_log():
  """Undoes what commands run in this process do to the package's log."""
  package = logging.getLogger('moda_jax')
  before = [*package.handlers], package.level, package.propagate
  yield
  package.handlers, level, package.propagate = before
  package.setLevel(level)


@pytest.fixture(scope='session')
def mini_data_dir(tmp_path_factory, request):
  """Returns a TFDS folder with mini digits, built once without a network.

  Of several workers the first builds, and the others wait for it.
  """
  import tensorflow_datasets as tfds

  from moda_jax.datasets import preparation

  def refuse(*args, **kwargs):
    raise AssertionError(f'network use: {args}')

  base = tmp_path_factory.getbasetemp()
  parallel = hasattr(request.config, 'workerinput')
  data_dir = (base.parent if parallel else base) / 'tfds'
  with (
    pytest.MonkeyPatch.context() as patch,
    preparation.lock(data_dir, wait=True),
  ):
    patch.setattr(socket.socket, 'connect', refuse)
    patch.setattr(socket.socket, 'connect_ex', refuse)
    patch.setattr(socket, 'getaddrinfo', refuse)
    # TensorFlow would reach Google's storage without Python's sockets.
    patch.setattr(tfds.core.utils.gcs_utils, 'exists', refuse)
    for domain in ('mnist', 'uci', 'mnistm', 'synth'):
      builder = tfds.builder(f'mini_digits/{domain}', data_dir=data_dir)
      if not preparation.is_prepared(builder):
        builder.download_and_prepare()
  return data_dir


@pytest.fixture
def study_flags(tmp_path):
  """Defines the flags of a study, and takes them away again."""
  # Heavy: the tests of the package do without.
  from experiments.runs import command

  before = set(flags.FLAGS)
  command.define_flags('digits', 'tiny')
  new = sorted(set(flags.FLAGS) - before)
  flags.FLAGS(['study', f'--workdir={tmp_path}', f'--results={tmp_path}'])
  yield flags.FLAGS
  for name in new:
    delattr(flags.FLAGS, name)
