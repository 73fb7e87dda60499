"""The peak memory of an Office-31 step, with and without `remat`.

Each takes two steps in a process of its own, on random images. A run of eight
steps, whose batches are made ahead and whose steps are dispatched ahead, is
compared with a run of a single one.
"""

import multiprocessing
import pathlib
import resource
import time
from typing import Any

from experiments.benchmark import settings
from experiments.benchmark.options import Options

_GIBIBYTE = 2**30
_RUNS = (1, 8)  # steps


def measure(options: Options) -> dict[str, Any]:
  """Returns GiB by name and the seconds of the second step."""
  size = 64 if options.quick else 256
  context = multiprocessing.get_context('spawn')
  found = {'size': size}
  for remat in ('false', 'true'):
    argument = f'webcam,pretrained=,image_size={size},remat={remat}'
    with context.Pool(1) as pool:
      found[f'remat={remat}'] = pool.apply(_measure_one, (argument,))
  for steps in _RUNS:
    argument = f'webcam,pretrained=,image_size={size},steps={steps}'
    with context.Pool(1) as pool:
      peak_of_run = pool.apply(_measure_run, (argument, options.folder))
    found[f'run of {steps}'] = peak_of_run
  return found


def _measure_run(argument: str, folder: pathlib.Path) -> float:
  """Trains and evaluates; returns the most memory of its process, in GiB."""
  import moda_jax
  from moda_jax.training import loop

  config = moda_jax.get_config(f'office31:{argument}')
  domains = settings.make_domains(config, 'office31', 32)
  loop.train(config, folder / f'{config.run.steps}', domains)
  return peak()


def _measure_one(argument: str) -> dict[str, float]:
  # Imported here: this is the first thing that a process of its own does.
  from experiments.benchmark.ours import Ours

  config = settings.make_config('office31', argument)
  ours = Ours(config, settings.make_domains(config, 'office31', 32))
  before = peak()
  reserved, kept = ours.count_reserved_bytes(), ours.count_kept_bytes()
  ours.time_steps(1)
  start = time.perf_counter()
  ours.time_steps(1)
  return {
    'kept': kept / _GIBIBYTE,
    'reserved': reserved / _GIBIBYTE,
    'process': peak() - before,
    'seconds': time.perf_counter() - start,
  }


def peak() -> float:
  """Returns the most memory that this process has had, in GiB."""
  kibibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
  return kibibytes * 1024 / _GIBIBYTE


def describe(result: dict[str, Any]) -> list[str]:
  """Returns the lines of Markdown."""
  size = result['size']
  lines = [
    f'### Memory of an Office-31 step, {size} × {size}, batch 8',
    '',
    '| | kept for the backward pass | set aside by XLA | the process grew by '
    '| s/step |',
    '|---|---|---|---|---|',
  ]
  for name, found in result.items():
    if name.startswith('remat'):
      lines.append(
        f'| `{name}` | {found["kept"]:.2f} GiB | {found["reserved"]:.2f} GiB '
        f'| {found["process"]:.2f} GiB | {found["seconds"]:.1f} |'
      )
  one, several = (result[f'run of {steps}'] for steps in _RUNS)
  return [
    *lines,
    '',
    f'A run of {_RUNS[1]} steps with an evaluation has {several:.2f} GiB at '
    f'most, one of a single step {one:.2f}: {several / one:.2f} ×.',
    '',
  ]
