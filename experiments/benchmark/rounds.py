"""Turns of several contestants, and what their figures come to.

Contestants take turns round by round, so that a busy machine is busy for all of
them; ratios are taken within a round.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence

Turn = Callable[[], float]


def take_turns(
  contestants: Mapping[str, Turn], rounds: int
) -> dict[str, list[float]]:
  """Returns each contestant's figure of every round.

  A round before the first one is not counted: it compiles and warms up.

  Args:
    contestants: functions that measure themselves.
    rounds: how many count.
  """
  figures = {name: [] for name in contestants}
  for round_ in range(rounds + 1):
    for name, turn in contestants.items():
      figure = turn()
      if round_:
        figures[name].append(figure)
  return figures


def summarise(figures: Sequence[float]) -> dict[str, float]:
  """Returns the median and the ends of the range."""
  return {
    'median': statistics.median(figures),
    'least': min(figures),
    'most': max(figures),
    'rounds': len(figures),
  }


def compare(a: Sequence[float], b: Sequence[float]) -> dict[str, float]:
  """Summarises the ratios `a / b` of the same rounds."""
  return summarise([x / y for x, y in zip(a, b, strict=True)])


def show(
  summary: Mapping[str, float], scale: float = 1, digits: int = 1
) -> str:
  """Returns `median (least–most)`."""
  median, least, most = (
    f'{scale * summary[name]:,.{digits}f}'
    for name in ('median', 'least', 'most')
  )
  return f'{median} ({least}–{most})'
