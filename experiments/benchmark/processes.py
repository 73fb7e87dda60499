"""A step on two devices of one process, and of two processes.

Whole runs of `python -m moda_jax.main` on mini digits, on virtual devices of a
CPU: what the processes' agreement and their sums over sockets cost.
"""

import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
from typing import Any

from experiments.benchmark import rounds
from experiments.benchmark.options import Options
from experiments.benchmark.twin_client import ROOT
from moda_jax.errors import UserError
from moda_jax.training.progress import STEPS_PER_SECOND

_STEPS, _LINES = 300, 6
_DEVICES = '--xla_force_host_platform_device_count'
_LAYOUTS = {
  '1 process × 1 device': (1, 1),
  '1 process × 2 devices': (1, 2),
  '2 processes × 1 device': (2, 1),
}


def measure(options: Options) -> dict[str, Any]:
  """Returns milliseconds per step, by processes and devices."""
  turns = {
    name: lambda name=name, layout=layout: _time_step(
      options.folder / name.replace(' ', '_'), *layout
    )
    for name, layout in _LAYOUTS.items()
  }
  figures = rounds.take_turns(turns, 1 if options.quick else 3)
  one, several = list(_LAYOUTS)[1:]
  return {
    'milliseconds': {k: rounds.summarise(v) for k, v in figures.items()},
    'against_one_process': rounds.compare(figures[several], figures[one]),
  }


def _time_step(folder: pathlib.Path, processes: int, devices: int) -> float:
  """Trains a run; returns the median over its lines but the first two."""
  turn = 0
  while (workdir := folder / str(turn)).exists():
    turn += 1
  every = _STEPS // _LINES
  command = [
    sys.executable,
    '-m',
    'moda_jax.main',
    f'--config=configs/mini.py:mnistm,steps={_STEPS},log_every={every}',
    f'--workdir={workdir}',
  ]
  environment = _environment(devices)
  port = _find_port()
  started = [
    subprocess.Popen(
      command + (_flags(processes, index, port) if processes > 1 else []),
      cwd=ROOT,
      env=environment,
      stdout=subprocess.DEVNULL,
      stderr=subprocess.DEVNULL,
    )
    for index in range(processes)
  ]
  statuses = [process.wait() for process in started]
  if any(statuses):
    raise UserError(f'{" ".join(command)} failed.')
  lines = (workdir / 'metrics.jsonl').read_text().splitlines()
  rates = [json.loads(line)[STEPS_PER_SECOND] for line in lines[2:]]
  return 1e3 / statistics.median(rates)


def _environment(devices: int) -> dict[str, str]:
  given = os.environ.get('XLA_FLAGS', '').split()
  kept = [flag for flag in given if not flag.startswith(_DEVICES)]
  flags = ' '.join([*kept, f'{_DEVICES}={devices}'])
  return os.environ | {'JAX_PLATFORMS': 'cpu', 'XLA_FLAGS': flags}


def _flags(count: int, index: int, port: int) -> list[str]:
  return [
    f'--coordinator=localhost:{port}',
    f'--processes={count}',
    f'--process={index}',
  ]


def _find_port() -> int:
  with socket.socket() as free:
    free.bind(('localhost', 0))
    return free.getsockname()[1]


def describe(result: dict[str, Any]) -> list[str]:
  """Returns the lines of Markdown."""
  lines = ['### Two devices, two processes: mini digits', '']
  lines += ['| | ms/step |', '|---|---|']
  for name, figure in result['milliseconds'].items():
    lines.append(f'| {name} | {rounds.show(figure)} |')
  ratio = rounds.show(result['against_one_process'], digits=2)
  return [
    *lines,
    '',
    f'Two processes take {ratio} × the time of one with two devices, on the '
    'same cores.',
    '',
  ]
