"""What several seeds in one program save on reviews."""

from typing import Any

from experiments.benchmark import rounds, settings
from experiments.benchmark.options import Options
from experiments.benchmark.ours import Ours

_SEEDS, _REVIEWS, _STEPS = 5, 500, 5


def measure(options: Options) -> dict[str, Any]:
  """Returns seconds of a step of all seeds and of one, and their ratio.

  Below 1, all at once is faster than one after the other.
  """
  members = {
    'all': _make(f'books,seeds={_SEEDS}'),
    'one': _make('books'),
  }
  turns = {
    'all': lambda: members['all'].time_steps(_STEPS),
    'one': lambda: members['one'].time_steps(_STEPS),
  }
  figures = rounds.take_turns(turns, 2 if options.quick else 9)
  after_another = [_SEEDS * seconds for seconds in figures['one']]
  return {
    'seeds': _SEEDS,
    'seconds': {k: rounds.summarise(v) for k, v in figures.items()},
    'ratio': rounds.compare(figures['all'], after_another),
  }


def _make(argument: str) -> Ours:
  config = settings.make_config('reviews', argument)
  return Ours(config, settings.make_domains(config, 'reviews', _REVIEWS))


def describe(result: dict[str, Any]) -> list[str]:
  """Returns the lines of Markdown."""
  seconds = result['seconds']
  return [
    f'### {result["seeds"]} seeds of reviews in one program',
    '',
    f'A step of all takes {rounds.show(seconds["all"], 1e3)} ms, of one '
    f'{rounds.show(seconds["one"], 1e3)} ms: all at once takes '
    f'{rounds.show(result["ratio"], digits=2)} times as long as one after the '
    'other.',
    '',
  ]
