"""Set-up of all tests: CPU, eight virtual devices, no network."""

import os
import pathlib
import sys
import tempfile

# Before JAX starts. Tests that want one device take the first.
os.environ['JAX_PLATFORMS'] = 'cpu'
os.environ['XLA_FLAGS'] = (
  os.environ.get('XLA_FLAGS', '') + ' --xla_force_host_platform_device_count=8'
)
sys.path.insert(0, str(pathlib.Path(__file__).parent))
# The same small programs are compiled by many tests.
os.environ.setdefault('JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS', '0')
os.environ.setdefault('JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES', '-1')
os.environ.setdefault(
  'JAX_COMPILATION_CACHE_DIR',
  tempfile.mkdtemp(prefix='moda_jax_compiled_'),
)
