r"""How far criteria without target labels can be trusted, over finished runs.

  python -m experiments.criteria runs/tables/digits_small --name=digits_small
  python -m experiments.criteria runs/tables 'runs/mine/*' --name=all

For each experiment and target, among the finished runs in these folders and
below: those of the same target, sources and network. Spearman's rank
correlation of every criterion with the true accuracy on the target, and the
points of accuracy lost by its choice against the oracle's, which is the best
run. Beside them are what a choice at random and the worst choice would lose.
The same among the evaluations of each run, where they were judged, on average
over the runs. Agreement is that of all runs of the target (EnsV). What has
collapsed is refused, as by moda_jax.select. Runs that are not finished, or
whose accuracy depends on target labels, are left out, and it says so. Writes
NAME.md and NAME.csv.
"""

import argparse
import collections
import csv
import math
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from experiments.selection.correlation import LEAST, correlate
from moda_jax import cli
from moda_jax.errors import UserError
from moda_jax.files.atomic import write_whole
from moda_jax.selection.criteria import CRITERIA
from moda_jax.selection.ranking import (
  DEFAULTS,
  Candidate,
  rank,
)

if TYPE_CHECKING:
  from experiments.selection.finished import Group, Judged

_DEFAULT = f'default ({", ".join(DEFAULTS)})'


class Score(NamedTuple):
  """How one criterion did among the runs of one target.

  Attributes:
    experiment: of the runs.
    target: of the runs.
    among: what was chosen among, `runs` or `evaluations`.
    criterion: of `CRITERIA`, agreement, or a choice to compare with.
    candidates: how many there were to choose among.
    correlation: Spearman's, of its order with accuracy; NaN where one of the
      two is constant, or where refusals have left too few.
    lost: points of accuracy below the best of all runs.
    targets: over how many targets it is the mean.
  """

  experiment: str
  target: str
  among: str
  criterion: str
  candidates: int
  correlation: float
  lost: float
  targets: int = 1


def score_criteria(
  candidates: Sequence[Candidate],
  accuracies: Sequence[float],
  experiment: str = '',
  target: str = '',
  among: str = 'runs',
) -> list[Score]:
  """Returns how each criterion did, and what chance and the worst would do.

  Criteria that are not known of all candidates are left out.

  Args:
    candidates: runs, or evaluations.
    accuracies: of each on the target, fractions.
    experiment: see `Score`.
    target: see `Score`.
    among: see `Score`.
  """
  names = [c.name for c in candidates]
  known = dict(zip(names, accuracies, strict=True))
  try:
    ranking = rank(candidates)
  except UserError as error:
    print(f'{experiment}, {target}: {error}')
    return []
  left = len(names) - len(ranking.refused)
  rows = [
    (
      name,
      len(order),
      correlate(name, ranking.scores[name], known),
      known[order[0]],
    )
    for name, order in ranking.orders.items()
    if len(order) == left
  ]
  if ranking.chosen:
    rows.append((_DEFAULT, left, math.nan, known[ranking.chosen]))
  mean, least = float(np.mean(accuracies)), min(accuracies)
  rows.append(('at random', len(names), math.nan, mean))
  rows.append(('the worst', len(names), math.nan, least))
  best = max(accuracies)
  return [
    Score(experiment, target, among, name, n, correlation, 100 * (best - own))
    for name, n, correlation, own in rows
  ]


def tabulate(scores: Sequence[Score]) -> str:
  """Returns the scores as Markdown: all targets together, then each."""
  parts = []
  for among, own in _group(scores, 'among').items():
    by_target = _group(own, 'experiment', 'target')
    title = f'## Among {among[0]}, mean of {len(by_target)} targets'
    parts += [title, _table(average(own))]
    for (experiment, target), rows in by_target.items():
      parts += [f'### {experiment}, {target}, among {among[0]}', _table(rows)]
  return '\n\n'.join(parts) + '\n'


def _group(
  scores: Sequence[Score], *names: str
) -> dict[tuple[str, ...], list[Score]]:
  groups: dict[tuple[str, ...], list[Score]] = collections.defaultdict(list)
  for score in scores:
    groups[tuple(getattr(score, name) for name in names)].append(score)
  return groups


def average(scores: Sequence[Score]) -> list[Score]:
  """Returns each criterion's mean, and how many it chose among in all."""
  averaged = []
  for (_, name), own in _group(scores, 'among', 'criterion').items():
    known = [s.correlation for s in own if math.isfinite(s.correlation)]
    averaged.append(
      own[0]._replace(
        criterion=name,
        candidates=sum(s.candidates for s in own),
        correlation=float(np.mean(known)) if known else math.nan,
        lost=float(np.mean([s.lost for s in own])),
        targets=len(own),
      )
    )
  return averaged


def _table(scores: Sequence[Score]) -> str:
  lines = [
    '| criterion | targets | candidates | Spearman | points lost |',
    '|---|---|---|---|---|',
  ]
  for score in scores:
    known = math.isfinite(score.correlation)
    shown = f'{score.correlation:+.2f}' if known else ''
    lines.append(
      f'| {score.criterion} | {score.targets} | {score.candidates} | {shown} '
      f'| {score.lost:.1f} |'
    )
  return '\n'.join(lines)


def write(scores: Sequence[Score], path: pathlib.Path) -> list[pathlib.Path]:
  """Writes `path`.md and .csv; returns them."""
  path.parent.mkdir(parents=True, exist_ok=True)
  table, text = path.with_suffix('.csv'), path.with_suffix('.md')
  with write_whole(table, newline='') as file:
    writer = csv.writer(file)
    writer.writerow(Score._fields)
    writer.writerows(scores)
  with write_whole(text) as file:
    file.write(f'# Choosing without target labels\n\n{tabulate(scores)}')
  return [text, table]


def measure(groups: Sequence['Group']) -> list[Score]:
  """Returns the scores of criteria in each group of runs."""
  # Heavy: imported once the folders are known to be there.
  from experiments.selection.finished import judge_runs

  scores: list[Score] = []
  for group in groups:
    runs = judge_runs(group)
    named = group.experiment, group.target
    if len(runs) >= LEAST:
      accuracies = [run.accuracy for run in runs]
      made = [run.candidate for run in runs]
      scores += score_criteria(made, accuracies, *named)
    over_time = [s for run in runs for s in _score_evaluations(run)]
    scores += [
      score._replace(experiment=named[0], target=named[1], targets=1)
      for score in average(over_time)
    ]
  if not scores:
    raise UserError(
      f'A rank correlation needs {LEAST} finished runs of a target, or '
      'evaluations of a run, with accuracies that do not depend on target '
      'labels.'
    )
  return scores


def _score_evaluations(run: 'Judged') -> list[Score]:
  """Returns how each criterion chooses among the evaluations of a run."""
  from moda_jax.training.evaluation import ACCURACY
  from moda_jax.training.judging import EFFECTIVE_CLASSES, metric

  lines = [line for line in run.evaluations if ACCURACY in line]
  if len(lines) < LEAST:
    return []
  candidates = [
    Candidate(
      str(line['step']),
      {name: line[metric(name)] for name in CRITERIA if metric(name) in line},
      effective_classes=line[EFFECTIVE_CLASSES],
      classes=run.candidate.classes,
    )
    for line in lines
  ]
  accuracies = [line[ACCURACY] for line in lines]
  return score_criteria(candidates, accuracies, among='evaluations')


def main(arguments: Sequence[str] | None = None) -> None:
  """Measures the criteria over the runs that the arguments name."""
  parser = argparse.ArgumentParser(
    'python -m experiments.criteria',
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  parser.add_argument(
    'runs', nargs='+', metavar='FOLDER', help='folders with runs, or patterns'
  )
  parser.add_argument('--name', default='criteria', help='of the files written')
  parser.add_argument(
    '--results', type=pathlib.Path, default='experiments/results'
  )
  options = parser.parse_args(arguments)
  cli.log_to_stdout()
  # Heavy: imported once the arguments are known to be good.
  from experiments.selection.finished import find_runs, group_runs

  scores = measure(group_runs(find_runs(options.runs)))
  files = write(scores, options.results / options.name)
  print('\n'.join([tabulate(scores), *map(str, files)]))


if __name__ == '__main__':
  cli.end_by_message(main)
