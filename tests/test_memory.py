"""Freed memory is reused, as the system's count of page faults shows."""

import platform
import subprocess
import sys

import pytest

_COUNT_FAULTS = """
import ctypes, resource, threading
{prepare}

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]

def touch(size=256 * 2**20):
  before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
  block = libc.malloc(ctypes.c_size_t(size))
  ctypes.memset(block, 1, size)
  libc.free(block)
  return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def touch_twice():
  touch()
  print(touch())

thread = threading.Thread(target=touch_twice)
thread.start()
thread.join()
"""


@pytest.mark.skipif(platform.libc_ver()[0] != 'glibc', reason='needs glibc')
@pytest.mark.parametrize(
  ('prepare', 'reuses'),
  [
    ('from moda_jax import cli; cli.keep_freed_memory()', True),
    ('import moda_jax', False),
  ],
)
def test_what_a_thread_frees_is_reused(prepare: str, reuses: bool) -> None:
  program = _COUNT_FAULTS.format(prepare=prepare)
  found = subprocess.run(
    [sys.executable, '-c', program], capture_output=True, text=True, check=True
  )
  # 256 MiB are 65,536 pages of 4 KiB, fewer where pages are huge.
  assert (int(found.stdout) < 64) == reuses
