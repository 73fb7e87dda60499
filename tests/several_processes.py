"""Starts several processes that find each other, each with some devices."""

import os
import pathlib
import re
import socket
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]
TIMEOUT = 1800
GLOO = re.compile(
  r'(?=.*\S)(\[Gloo\]|Rank|is|connected|to|peer|ranks|Expected|number|of|[\d.:\s])+'
)


def find_port():
  with socket.socket() as free:
    free.bind(('localhost', 0))
    return free.getsockname()[1]


def flags(count, index, port):
  return [
    f'--coordinator=localhost:{port}',
    f'--processes={count}',
    f'--process={index}',
  ]


def environment(devices=1, **values):
  """Returns that of a process with so many devices."""
  flags = os.environ.get('XLA_FLAGS', '').split()
  kept = [f for f in flags if 'device_count' not in f]
  kept.append(f'--xla_force_host_platform_device_count={devices}')
  paths = [str(ROOT), str(ROOT / 'tests')]
  return os.environ | {
    'JAX_PLATFORMS': 'cpu',
    'XLA_FLAGS': ' '.join(kept),
    'PYTHONPATH': os.pathsep.join(paths),
    **values,
  }


def start(arguments, devices=1, **values):
  """Starts `python …` with all that it prints in one pipe."""
  return subprocess.Popen(
    [sys.executable, *map(str, arguments)],
    env=environment(devices, **values),
    cwd=ROOT,
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
  )


def start_all(arguments, count, devices=1, **values):
  """Starts `count` of them; a single one is told nothing of others."""
  if count == 1:
    return [start(arguments, devices, **values)]
  port = find_port()
  return [
    start([*arguments, *flags(count, index, port)], devices, **values)
    for index in range(count)
  ]


def finish(started):
  """Waits for all; returns the status and the output of each."""
  try:
    outputs = [process.communicate(timeout=TIMEOUT)[0] for process in started]
  finally:
    for process in started:
      process.kill()
  return [
    (process.returncode, leave_out_gloo(output))
    for process, output in zip(started, outputs, strict=True)
  ]


def leave_out_gloo(output):
  """Returns the output without what the collectives of CPUs print.

  The threads of a process print at once, so that pieces of their lines mix.
  """
  lines = output.splitlines(keepends=True)
  return ''.join(line for line in lines if not GLOO.fullmatch(line))
