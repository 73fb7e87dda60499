"""Which composition is chosen without target labels, and what that costs."""

import collections
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from experiments.runs.records import Line
from experiments.selection.agreeing import Agreements, Task
from experiments.selection.correlation import correlate
from moda_jax.selection.agreement import AGREEMENT
from moda_jax.selection.ranking import Candidate, rank

Runs = Mapping[str, Mapping[Task, Line]]  # by composition


class Choice(NamedTuple):
  """What a criterion chooses among the compositions.

  Attributes:
    criterion: its name, or what it is compared with.
    chosen: the composition, by target and seed; empty where there is none.
    accuracies: of the chosen one (%), by target and seed.
    below: points below the best of the candidates, by target and seed.
    correlations: Spearman's, of the criterion's order with accuracy, by target
      and seed; NaN where there is none.
  """

  criterion: str
  chosen: dict[Task, str]
  accuracies: dict[Task, float]
  below: dict[Task, float]
  correlations: dict[Task, float]


def find_tasks(runs: Runs) -> list[Task]:
  """Returns the targets and seeds that there are runs of."""
  return list(dict.fromkeys(task for own in runs.values() for task in own))


def choose(runs: Runs, agreements: Agreements | None = None) -> list[Choice]:
  """Returns what is chosen: by default, by each criterion, and at best.

  A choice is among the compositions of one target and seed, where all of them
  have been judged. The first is the default, which is agreement where it is
  known of all; then follow the other criteria that are known of all, a choice
  at random, and the best.

  Args:
    runs: by composition.
    agreements: see `agreeing.measure`.
  """
  tasks = [
    task
    for task in find_tasks(runs)
    if all(own.get(task, {}).get('criteria') for own in runs.values())
  ]
  found: dict[str, dict[Task, tuple[str, float]]]
  found = collections.defaultdict(dict)
  for task in tasks:
    agreeing = (agreements or {}).get(task, {})
    for name, choice in _choose_at(task, runs, agreeing).items():
      found[name][task] = choice
  made = [_make_choice(name, own, runs) for name, own in found.items()]
  if not made:
    return []
  made.sort(key=lambda choice: choice.criterion == 'the best')
  return [*made[:-1], _at_random(tasks, runs), made[-1]]


def _choose_at(
  task: Task, runs: Runs, agreeing: Mapping[str, float]
) -> dict[str, tuple[str, float]]:
  """Returns the choice of each criterion and its correlation with accuracy."""
  ranking = rank([_candidate(name, runs[name][task]) for name in runs])
  left = {*runs} - {*ranking.refused}
  accuracies = {name: own[task]['accuracy'] for name, own in runs.items()}
  found = {}
  if agreeing and {*agreeing} == left:
    best = max(agreeing, key=lambda name: agreeing[name])
    correlation = correlate(AGREEMENT, agreeing, accuracies)
    found[f'{AGREEMENT} (default)'] = best, correlation
  elif ranking.chosen:
    name = f'{ranking.criterion} (default without predictions)'
    found[name] = ranking.chosen, math.nan
  for name, order in ranking.orders.items():
    if len(order) == len(left):
      scores = ranking.scores[name]
      found[name] = order[0], correlate(name, scores, accuracies)
  best = max(accuracies, key=lambda name: accuracies[name])
  return found | {'the best': (best, math.nan)}


def _candidate(name: str, line: Line) -> Candidate:
  scores = dict(line['criteria'])
  classes = int(scores.pop('classes'))
  effective = scores.pop('effective_classes', None)
  return Candidate(name, scores, None, effective, classes)


def _make_choice(
  criterion: str, found: dict[Task, tuple[str, float]], runs: Runs
) -> Choice:
  chosen = {task: name for task, (name, _) in found.items()}
  own = {t: 100 * runs[name][t]['accuracy'] for t, name in chosen.items()}
  correlations = {task: correlation for task, (_, correlation) in found.items()}
  return Choice(criterion, chosen, own, _below(own, runs), correlations)


def _at_random(tasks: Sequence[Task], runs: Runs) -> Choice:
  own = {
    t: float(np.mean([100 * of[t]['accuracy'] for of in runs.values()]))
    for t in tasks
  }
  return Choice('at random', {}, own, _below(own, runs), {})


def _below(own: dict[Task, float], runs: Runs) -> dict[Task, float]:
  return {
    task: max(100 * of[task]['accuracy'] for of in runs.values()) - value
    for task, value in own.items()
  }
