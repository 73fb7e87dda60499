"""Ctrl-C while the main thread is busy outside Python."""

import subprocess
import sys

import pytest

# Key derivation neither ends by itself nor lets a handler of Python run.
SCRIPT = """
import hashlib, os, signal, threading, time
from moda_jax import cli
from moda_jax.training.interruption import catch_signals
cli.log_to_stdout()

def interrupt():
  for _ in range({signals}):
    time.sleep(0.2)
    os.kill(os.getpid(), signal.{name})

with catch_signals() as stop:
  threading.Thread(target=interrupt).start()
  hashlib.pbkdf2_hmac('sha256', b'', b'', {rounds})
  print('stopping' if stop.is_set() else 'going on', flush=True)
"""


def call(**values):
  return subprocess.run(
    [sys.executable, '-c', SCRIPT.format(**values)],
    capture_output=True,
    text=True,
    timeout=600,
    check=False,
  )


def test_the_second_signal_leaves_at_once():
  result = call(signals=2, name='SIGINT', rounds=2**31 - 1)  # some minutes
  assert result.returncode == 130, result.stderr
  assert 'SIGINT: saving and leaving after the step' in result.stdout
  assert result.stderr == 'left at once; the last checkpoint is kept\n'


@pytest.mark.parametrize('name', ['SIGINT', 'SIGTERM'])
def test_the_first_signal_lets_what_is_under_way_end(name):
  result = call(signals=1, name=name, rounds=2_000_000)
  assert result.returncode == 0, result.stderr
  acknowledged, end = result.stdout.splitlines()
  assert f'{name}: saving and leaving' in acknowledged
  assert end == 'stopping'
