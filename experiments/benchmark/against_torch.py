"""Training steps against PyTorch and against the roofline, in turns."""

import contextlib
import pathlib
from typing import Any

from experiments.benchmark import equality, roofline, rounds, settings
from experiments.benchmark.options import Options
from experiments.benchmark.ours import Ours
from experiments.benchmark.twin_client import KEEP_FREED_MEMORY, Twin

LIVE, KEPT = 'moda_jax, live', 'moda_jax, kept batch'
AS_WRITTEN = 'PyTorch as written, live'
TUNED = 'PyTorch tuned, kept batch'
TUNED_MEMORY = 'PyTorch tuned, kept batch, freed memory kept'
_REVIEWS_STEPS = 1500  # 15 epochs of 2,000 reviews by 20
_RATES = (roofline.PRODUCT, roofline.TRIAD)
_LARGE = ('office31_128', 'office31_256')  # memory for two twins at most


def measure(name: str, options: Options) -> dict[str, Any]:
  """Returns all contestants' seconds per step, ratios and the roofline."""
  case = settings.CASES[name]
  config = case.config
  domains = settings.make_domains(config, case.family, case.examples)
  checks = _check(case, options)
  ours = Ours(config, domains)
  setting = settings.describe_for_twin(config, domains)
  parameters, operations = ours.count_parameters(), ours.count_flops()
  steps = max(1, case.steps // 4) if options.quick else case.steps
  contestants = {
    LIVE: lambda: ours.time_steps(steps, live=True),
    KEPT: lambda: ours.time_steps(steps),
  }
  with contextlib.ExitStack() as stack:
    twins = {}
    if options.torch_python:
      twins = _start_twins(name, options, setting, ours, stack)
    for twin_name, twin in twins.items():
      live = twin_name == AS_WRITTEN
      contestants[twin_name] = _make_turn(twin, steps, live)
    contestants |= roofline.make_turns(twins.get(TUNED))
    count = _count_rounds(name, options)
    figures = rounds.take_turns(contestants, count)
    about = {key: twin.about for key, twin in twins.items()}
  rates = roofline.summarise_rates(
    {k: v for k, v in figures.items() if k.startswith(_RATES)}
  )
  figures = {k: v for k, v in figures.items() if not k.startswith(_RATES)}
  images = ours.experiment.images_per_step
  median = rounds.summarise(figures[LIVE])['median']
  return {
    'title': case.title,
    'images_per_step': images,
    'seconds': {k: rounds.summarise(v) for k, v in figures.items()},
    'against_live': {
      k: rounds.compare(v, figures[LIVE]) for k, v in figures.items()
    },
    'checks': checks,
    'twins': about,
    'rates': rates,
    'roofline': roofline.find_share(rates, operations, parameters, median),
  }


def _count_rounds(name: str, options: Options) -> int:
  if name in _LARGE:
    return 1 if options.quick else 3
  return 2 if options.quick else 9


def _check(case: settings.Case, options: Options) -> dict[str, Any]:
  if not options.torch_python:
    return {}
  checks = equality.check(case, options.torch_python, options.folder)
  equality.require(checks)
  return checks


def _start_twins(
  name: str,
  options: Options,
  setting: dict[str, Any],
  ours: Ours,
  stack: contextlib.ExitStack,
) -> dict[str, Twin]:
  kinds = {
    AS_WRITTEN: ('as written', {}),
    TUNED: ('tuned', {}),
    TUNED_MEMORY: ('tuned', KEEP_FREED_MEMORY),
  }
  if name in _LARGE:
    del kinds[TUNED_MEMORY]
  twins = {}
  for key, (kind, environment) in kinds.items():
    twin = Twin(options.torch_python, kind, setting, environment)
    twins[key] = stack.enter_context(twin)
    twin.load(ours, pathlib.Path(options.folder), live=key == AS_WRITTEN)
  return twins


def _make_turn(twin: Twin, steps: int, live: bool) -> rounds.Turn:
  return lambda: twin.time_steps(steps, live)


def describe(result: dict[str, Any]) -> list[str]:
  """Returns the lines of Markdown for one case."""
  lines = [
    f'### {result["title"]}',
    '',
    '| | ms/step | against ours, live | images/s |',
    '|---|---|---|---|',
  ]
  for name, seconds in result['seconds'].items():
    ratio = rounds.show(result['against_live'][name], digits=2)
    rate = result['images_per_step'] / seconds['median']
    lines.append(
      f'| {name} | {rounds.show(seconds, 1e3)} | {ratio} | {rate:,.0f} |'
    )
  lines += ['', _describe_roofline(result), '']
  if 'reviews' in result['title']:
    lines += [_describe_run(result), '']
  for twin, found in result['checks'].items():
    lines.append(
      f'- The twin {twin} has our loss to {found["loss"]:.1e} and our '
      f'gradients to {found["gradient"]:.1e} (largest: `{found["of"]}`).'
    )
  return [*lines, '']


def _describe_roofline(result: dict[str, Any]) -> str:
  rates, found = result['rates'], result['roofline']
  return (
    f'Roofline: {found["flops"] / 1e9:.2f} GFLOP at '
    f'{rates[roofline.PRODUCT]["best"] / 1e9:.0f} GFLOP/s '
    f'({1e3 * found["products_seconds"]:.1f} ms) and '
    f'{found["bytes"] / 1e9:.2f} GB of parameters, gradients and accumulators '
    f'at {rates[roofline.TRIAD]["best"] / 1e9:.0f} GB/s '
    f'({1e3 * found["memory_seconds"]:.1f} ms) make '
    f'{1e3 * found["bound_seconds"]:.1f} ms: {100 * found["share"]:.0f} % '
    'reached, live.'
  )


def _describe_run(result: dict[str, Any]) -> str:
  each = ', '.join(
    f'{name} {_REVIEWS_STEPS * seconds["median"]:.1f} s'
    for name, seconds in result['seconds'].items()
  )
  return f'A run of 15 epochs, {_REVIEWS_STEPS:,} steps at these rates: {each}.'
