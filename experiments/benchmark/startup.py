"""Seconds from the command to the end of the first step, cold and warm."""

import os
import re
import subprocess
import sys
import time
from typing import Any

from experiments.benchmark import rounds
from experiments.benchmark.options import Options
from experiments.benchmark.twin_client import ROOT
from moda_jax.errors import UserError

# The second step ends the run; its evaluation and report are not timed.
_ARGUMENT = 'mnistm,steps=2,log_every=1'
_FIRST_STEP = re.compile(r'\bstep +1/2\b')


def measure(options: Options) -> dict[str, Any]:
  """Returns seconds with an empty compilation cache and with a filled one.

  A start before the others makes mini digits, where they are missing, and
  brings files into the system's cache.
  """
  count = 1 if options.quick else 3
  cold, warm = [], []
  for turn in range(count + 1):
    cache = options.folder / f'cache{turn}'
    cache.mkdir()
    seconds = [
      _time_start(options, cache, f'run{turn}_{name}')
      for name in ('cold', 'warm')
    ]
    if turn:
      cold.append(seconds[0])
      warm.append(seconds[1])
  return {'cold': rounds.summarise(cold), 'warm': rounds.summarise(warm)}


def _time_start(options: Options, cache: os.PathLike, name: str) -> float:
  argument = f'{_ARGUMENT},compilation_cache={cache}'
  command = [
    sys.executable,
    '-m',
    'moda_jax.main',
    f'--config=configs/mini.py:{argument}',
    f'--workdir={options.folder / name}',
  ]
  environment = os.environ | {'PYTHONUNBUFFERED': '1'}
  start, found = time.perf_counter(), None
  with subprocess.Popen(
    command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
  ) as process:
    for line in process.stdout:
      if found is None and _FIRST_STEP.search(line):
        found = time.perf_counter() - start
  if found is None or process.returncode:
    raise UserError(f'{" ".join(command)} ended with {process.returncode}.')
  return found


def describe(result: dict[str, Any]) -> list[str]:
  """Returns the lines of Markdown."""
  return [
    '### From the command to the first step, `configs/mini.py:mnistm`',
    '',
    f'- With an empty compilation cache: {rounds.show(result["cold"])} s.',
    f'- With a filled one: {rounds.show(result["warm"])} s.',
    '',
  ]
