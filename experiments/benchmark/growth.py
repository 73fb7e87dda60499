"""How the time of a step grows with sources, batch and width."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.benchmark import rounds, settings
from experiments.benchmark.options import Options
from experiments.benchmark.ours import Ours

_EXAMPLES = 128
_SERIES = {
  'sources': (1, 2, 4, 8),
  'batch': (4, 8, 16, 32),
  'width': (0.125, 0.25, 0.5, 1.0),
}


def measure(options: Options) -> dict[str, Any]:
  """Returns each series' seconds per step, and how straight its line is.

  Sources and batch are varied at full width, in quick mode at a quarter of it;
  the members of a series take turns.
  """
  width = 0.25 if options.quick else 1.0
  count = 2 if options.quick else 7
  return {
    name: _measure_series(name, values, width, count)
    for name, values in _SERIES.items()
  }


def _measure_series(
  name: str, values: Sequence[float], width: float, count: int
) -> dict[str, Any]:
  members = {str(value): _make(name, value, width) for value in values}
  figures = rounds.take_turns(
    {key: _make_turn(ours) for key, ours in members.items()}, count
  )
  found = {}
  for key, ours in members.items():
    step = rounds.summarise(figures[key])
    found[key] = {
      'seconds': step,
      'images': ours.experiment.images_per_step,
      'gigaflop': ours.count_flops() / 1e9,
      'compile_seconds': ours.first_step_seconds - step['median'],
    }
  series = {'width': width, 'members': found}
  if name != 'width':
    series['deviation'] = find_deviation(
      [m['images'] for m in found.values()],
      [m['seconds']['median'] for m in found.values()],
    )
  return series


def _make(name: str, value: float, width: float) -> Ours:
  argument = f'mnistm,width={value if name == "width" else width}'
  if name == 'batch':
    argument += f',batch_size={value}'
  sources = int(value) if name == 'sources' else 3
  config = settings.make_config('digits', argument, sources)
  return Ours(config, settings.make_domains(config, 'digits', _EXAMPLES))


def _make_turn(ours: Ours) -> rounds.Turn:
  def turn() -> float:
    if ours.first_step_seconds is None:
      return ours.time_steps(1)  # it compiles, which is measured too
    return ours.time_steps(5)

  return turn


def find_deviation(images: Sequence[int], seconds: Sequence[float]) -> float:
  """Returns the largest relative distance from the straight line of best fit.

  What a step costs whatever its images, such as the optimizer, is where the
  line begins.
  """
  slope, start = np.polyfit(images, seconds, 1)
  line = start + slope * np.asarray(images)
  return float(np.max(np.abs(np.asarray(seconds) / line - 1)))


def describe(result: dict[str, Any]) -> list[str]:
  """Returns the lines of Markdown."""
  lines = ['### Growth of a digits step on a kept batch', '']
  for name, series in result.items():
    at = '' if name == 'width' else f' at width {series["width"]:g}'
    lines += [
      f'| {name}{at} | ms/step | ms/image | GFLOP | first step, s more |',
      '|---|---|---|---|---|',
    ]
    for value, member in series['members'].items():
      median = member['seconds']['median']
      lines.append(
        f'| {value} | {rounds.show(member["seconds"], 1e3)} '
        f'| {1e3 * median / member["images"]:.2f} '
        f'| {member["gigaflop"]:.2f} | {member["compile_seconds"]:.1f} |'
      )
    lines.append('')
    if 'deviation' in series:
      lines += [
        f'From a straight line in the number of images the largest deviation '
        f'is {100 * series["deviation"]:.1f} %.',
        '',
      ]
  return lines
