"""What a run does beside its steps: evaluation and checkpoints."""

import statistics
import time
from typing import Any

from experiments.benchmark import rounds, settings
from experiments.benchmark.options import Options
from experiments.benchmark.ours import Ours
from moda_jax.training.reopened import open_folder

_CASE = settings.CASES['digits']


def measure(options: Options) -> dict[str, Any]:
  """Returns images per second of evaluation, and seconds per checkpoint."""
  config = _CASE.config
  examples = 1000 if options.quick else 4000
  domains = settings.make_domains(config, _CASE.family, examples)
  ours, count = Ours(config, domains), 2 if options.quick else 5
  ours.time_steps(2)
  turns = {
    'evaluation': lambda: _time_evaluation(ours),
    'step': lambda: ours.time_steps(5),
  }
  figures = rounds.take_turns(turns, count)
  rates = [examples / seconds for seconds in figures['evaluation']]
  blocked, complete = _time_saves(ours, options, count)
  every = settings.get(config, 'checkpoint_every')
  between = every * statistics.median(figures['step'])
  return {
    'evaluation_images_per_second': rounds.summarise(rates),
    'save_blocks_seconds': rounds.summarise(blocked),
    'save_seconds': rounds.summarise(complete),
    'checkpoint_every': every,
    'seconds_between': between,
    'share': statistics.median(complete) / between,
  }


def _time_evaluation(ours: Ours) -> float:
  start = time.perf_counter()
  ours.experiment.evaluator.accuracies(ours.state)
  return time.perf_counter() - start


def _time_saves(
  ours: Ours, options: Options, count: int
) -> tuple[list[float], list[float]]:
  """Returns how long a save keeps the loop waiting, and how long it takes."""
  blocked, complete = [], []
  for turn in range(count + 1):
    path = options.folder / f'checkpoint{turn}'
    folder = open_folder(path, ours.experiment)
    start = time.perf_counter()
    folder.save(ours.state, turn + 1, {})
    until_back = time.perf_counter() - start
    folder.checkpoints.describe()  # waits until it is written
    until_written = time.perf_counter() - start
    folder.close()
    if turn:  # the first one imports and warms up
      blocked.append(until_back)
      complete.append(until_written)
  return blocked, complete


def describe(result: dict[str, Any]) -> list[str]:
  """Returns the lines of Markdown."""
  rate = rounds.show(result['evaluation_images_per_second'], digits=0)
  return [
    '### Evaluation and checkpoints of digits at full width',
    '',
    f'- Evaluation: {rate} images/s.',
    f'- A checkpoint is written in {rounds.show(result["save_seconds"])} s, '
    f'of which the loop waits for {rounds.show(result["save_blocks_seconds"])}'
    f' s. With one every {result["checkpoint_every"]:,} steps '
    f'({result["seconds_between"]:.0f} s) that adds at most '
    f'{100 * result["share"]:.2f} %.',
    '',
  ]
