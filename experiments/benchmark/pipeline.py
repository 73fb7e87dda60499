"""Batches per second of the input pipeline alone, and the CPU time of one."""

import statistics
import time
from typing import Any

from experiments.benchmark import rounds, settings
from experiments.benchmark.options import Options

_NAMES = ('digits', 'digits_batch_64', 'reviews', 'office31_256')


def measure(options: Options) -> dict[str, Any]:
  """Returns each experiment's batches per second and CPU seconds per batch."""
  found = {}
  for name in _NAMES:
    found[name] = _measure_one(settings.CASES[name], options.quick)
  return found


def _measure_one(case: settings.Case, quick: bool) -> dict[str, Any]:
  from moda_jax.data import batches
  from moda_jax.objectives import find_method

  config = case.config
  domains = settings.make_domains(config, case.family, case.examples)
  spec = find_method(config.objective).batch_spec
  batch_fn = batches.make_batch_fn(domains, spec, config)
  feed = batches.make_batches(batch_fn, 0, 2**30)
  length, cpu = 0.3 if quick else 1.0, []

  def turn() -> float:
    for _ in range(8):  # what was made ahead since the last turn
      next(feed)
    made, start, used = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - start < length:
      next(feed)
      made += 1
    cpu.append((time.process_time() - used) / made)
    return made / (time.perf_counter() - start)

  figures = rounds.take_turns({'rate': turn}, 3 if quick else 7)
  return {
    'title': case.title,
    'batches_per_second': rounds.summarise(figures['rate']),
    'cpu_seconds': statistics.median(cpu[1:]),
  }


def describe(result: dict[str, Any]) -> list[str]:
  """Returns the lines of Markdown."""
  lines = [
    '### The input pipeline alone',
    '',
    '| | batches/s | CPU ms/batch, all threads |',
    '|---|---|---|',
  ]
  for found in result.values():
    rate = rounds.show(found['batches_per_second'], digits=0)
    lines.append(
      f'| {found["title"]} | {rate} | {1e3 * found["cpu_seconds"]:.2f} |'
    )
  return [*lines, '']
