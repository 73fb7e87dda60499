"""How long the runs of a table took, and what that is the time of."""

from collections.abc import Sequence

import numpy as np

from experiments.runs.records import Line

_TRAINING, _PROCESS = 'minutes of training', 'minutes of the process'


def format_minutes(
  rows: Sequence[Sequence[Line] | None],
) -> tuple[str, list[str]]:
  """Returns what a column of times is of, and the median time in each row.

  That is the time of the steps, where it is known for all the runs of a row,
  or else of whole processes, which also start and evaluate.
  """
  kinds = {_TRAINING: 'train_seconds', _PROCESS: 'seconds'}
  found: list[tuple[str, str]] = []
  for runs in rows:
    known = [
      (kind, _median_minutes(runs, key))
      for kind, key in kinds.items()
      if runs and all(run[key] is not None for run in runs)
    ]
    found.append((known or [('', '')])[0])
  used = [kind for kind in kinds if kind in dict(found)]
  if len(used) < 2:
    return (used or [_TRAINING])[0], [time for _, time in found]
  times = [time + ' \\*' * (kind == _PROCESS) for kind, time in found]
  return f'{_TRAINING}, or \\* of the process', times


def _median_minutes(runs: Sequence[Line], key: str) -> str:
  """Returns the median time of a seed; some were trained side by side."""
  seconds = [run[key] / run['config'].get('run.seeds', 1) for run in runs]
  minutes = float(np.median(seconds)) / 60
  return f'{minutes:.1f}' if minutes >= 1 else f'{minutes:.2g}'
