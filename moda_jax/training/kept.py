"""The evaluation whose checkpoint a run keeps, by `run.selection`."""

import logging
import math
import os
from collections.abc import Sequence

from moda_jax.selection.ranking import Candidate, rank
from moda_jax.training import processes
from moda_jax.training.judging import EFFECTIVE_CLASSES, metric
from moda_jax.training.metrics_file import Line, read_metrics
from moda_jax.training.model import Model
from moda_jax.training.saved_states import find_steps

_log = logging.getLogger(__name__)
NONE_CHOSEN = (
  'no evaluation can be chosen by {}: at all of them the predictions had '
  'collapsed onto few classes, or were not judged; the last checkpoint is taken'
)
GONE = (
  'the checkpoint of step {}, the best evaluation by {}, is not there: the '
  'last one is taken'
)


def order_evaluations(
  lines: Sequence[Line], criterion: str, classes: int
) -> list[int]:
  """Returns the steps of evaluations, the best by a criterion first.

  Those at which the mean prediction had collapsed onto few classes are left
  out. Of equal ones the latest comes first: it has learned for longer.

  Args:
    lines: of metrics.jsonl.
    criterion: a row of `CRITERIA`; '' gives no steps.
    classes: how many there are.
  """
  name = metric(criterion)
  candidates = [
    Candidate(
      str(line['step']),
      {criterion: line[name]},
      effective_classes=line.get(EFFECTIVE_CLASSES),
      classes=classes,
    )
    for line in reversed(lines)
    if criterion and math.isfinite(line.get(name, math.nan))
  ]
  if not candidates:
    return []
  orders = rank(candidates, criterion).orders
  return [int(step) for step in orders.get(criterion, ())]


def find_preferred(workdir: str | os.PathLike, model: Model) -> list[int]:
  """Returns the step that a run in a folder is predicted with.

  There is none where it is the last checkpoint.

  Args:
    workdir: the run's folder.
    model: of the run.
  """
  criterion, classes = model.settings.run.selection, len(model.inputs.classes)
  if not criterion:
    return []
  best = order_evaluations(read_metrics(workdir), criterion, classes)[:1]
  if not best:
    _log.warning('%s', NONE_CHOSEN.format(criterion))
  elif best[0] not in find_steps(workdir):
    _log.warning('%s', GONE.format(best[0], criterion))
  return best


class Keeper:
  """Follows a run's evaluations, and knows the best one so far.

  Attributes:
    best: its step, the same in all processes; 0 where there is none.
  """

  def __init__(self, criterion: str, classes: int, lines: Sequence[Line]):
    """Begins with what has been evaluated.

    Args:
      criterion: a row of `CRITERIA`; '' has none be the best.
      classes: how many there are.
      lines: of metrics.jsonl, as the first process reads them.
    """
    self._criterion = criterion
    self._classes = classes
    self._lines = list(lines)
    self.best = self._find_best()

  def take_in(self, line: Line) -> None:
    """Takes in the line of an evaluation."""
    self._lines.append(line)
    self.best = self._find_best()

  def _find_best(self) -> int:
    if not self._criterion:
      return 0
    order = order_evaluations(self._lines, self._criterion, self._classes)
    # Rounding may differ between processes, and all must save the same steps.
    return int(processes.hear_first(str(order[0] if order else 0)))
