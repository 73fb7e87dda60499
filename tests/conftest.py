"""Set-up of all tests: CPU, eight virtual devices, no network."""

import os
import pathlib
import sys

# Before JAX starts. Tests that want one device take the first.
os.environ['JAX_PLATFORMS'] = 'cpu'
os.environ['XLA_FLAGS'] = (
  os.environ.get('XLA_FLAGS', '') + ' --xla_force_host_platform_device_count=8'
)
sys.path.insert(0, str(pathlib.Path(__file__).parent))
