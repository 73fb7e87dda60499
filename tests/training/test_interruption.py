"""Ctrl-C while the main thread is busy outside Python."""

import signal
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


# What a command does before and after training.
COMMAND = """
import os, signal, threading, time
from moda_jax import cli

# A shell's background jobs, and all that they start, ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)

def main():
  threading.Timer(0.2, os.kill, (os.getpid(), signal.{name})).start()
  try:
    time.sleep(60)
  finally:
    print('tidied up', flush=True)

cli.end_by_message(main)
"""

UNREAD = """
import os, sys
from moda_jax import cli

def main():
  read, write = os.pipe()
  os.dup2(write, 1)
  os.close(write)
  os.close(read)
  sys.stdout = open(1, 'w', closefd=False)  # which keeps what is printed
  print('to nobody')
  raise KeyboardInterrupt

cli.end_by_message(main)
"""

COPY = """
import os, signal, time
from moda_jax import cli

def main():
  child = os.fork()
  if not child:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)
  print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

cli.end_by_message(main)
"""


def call(script=SCRIPT, **values):
  return subprocess.run(
    [sys.executable, '-c', script.format(**values)],
    capture_output=True,
    text=True,
    timeout=600,
    check=False,
  )


@pytest.mark.parametrize(
  ('name', 'status'), [('SIGINT', 130), ('SIGTERM', 143)]
)
def test_the_second_signal_leaves_at_once(name, status):
  result = call(signals=2, name=name, rounds=2**31 - 1)  # some minutes
  assert result.returncode == status, result.stderr
  assert f'{name}: saving and leaving after the step' in result.stdout
  assert result.stderr == 'left at once; the last checkpoint is kept\n'


@pytest.mark.parametrize('name', ['SIGINT', 'SIGTERM'])
def test_the_first_signal_lets_what_is_under_way_end(name):
  result = call(signals=1, name=name, rounds=2_000_000)
  assert result.returncode == 0, result.stderr
  acknowledged, end = result.stdout.splitlines()
  assert f'{name}: saving and leaving' in acknowledged
  assert end == 'stopping'


@pytest.mark.parametrize(
  ('name', 'message', 'status'),
  [('SIGINT', 'interrupted\n', 130), ('SIGTERM', 'terminated\n', 143)],
)
def test_a_command_that_does_not_train_ends_by_a_message(name, message, status):
  result = call(COMMAND, name=name)
  assert (result.returncode, result.stderr) == (status, message)
  assert result.stdout == 'tidied up\n'


def test_the_status_stays_where_the_output_is_not_read_any_more():
  result = call(UNREAD)
  assert (result.returncode, result.stderr) == (130, 'interrupted\n')


def test_a_copy_of_the_process_ends_by_sigterm_as_ever():
  result = call(COPY)
  assert (result.returncode, result.stderr) == (0, '')
  assert result.stdout == f'{-signal.SIGTERM}\n'
