r"""How far criteria without target labels can be trusted, over finished runs.

  python -m experiments.criteria 'runs/tables/*' --name=digits_small
  python -m experiments.criteria 'runs/digits/*' 'runs/reviews/*'

For each experiment and target, over the runs in these folders: Spearman's rank
correlation of every criterion with the true accuracy on the target, and the
points of accuracy lost by its choice against the oracle's, which is the best
run. Beside them are what a choice at random and the worst choice would lose.
Agreement is that of all runs of the target (EnsV). Runs that have collapsed are
refused, as by moda_jax.select. Writes NAME.md and NAME.csv.
"""

import argparse
import collections
import csv
import glob
import math
import pathlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from moda_jax import cli
from moda_jax.errors import UserError
from moda_jax.files.atomic import write_whole
from moda_jax.selection.ranking import (
  DEFAULTS,
  Candidate,
  badness,
  rank,
)

_DEFAULT = f'default ({", ".join(DEFAULTS)})'
_LEAST = 3  # runs of a target, for a rank correlation to say something


class Score(NamedTuple):
  """How one criterion did among the runs of one target.

  Attributes:
    experiment: of the runs.
    target: of the runs.
    criterion: of `CRITERIA`, agreement, or a choice to compare with.
    runs: how many it could choose among.
    correlation: Spearman's, of its order with accuracy; NaN where one of the
      two is constant.
    lost: points of accuracy below the best of all runs.
  """

  experiment: str
  target: str
  criterion: str
  runs: int
  correlation: float
  lost: float


def score_criteria(
  experiment: str,
  target: str,
  candidates: Sequence[Candidate],
  accuracies: Sequence[float],
) -> list[Score]:
  """Returns how each criterion did, and what chance and the worst would do.

  Args:
    experiment: of the runs.
    target: of the runs.
    candidates: one for each run.
    accuracies: of the runs on the target, fractions.
  """
  names = [c.name for c in candidates]
  known = dict(zip(names, accuracies, strict=True))
  ranking = rank(candidates)
  rows = [
    (
      name,
      len(order),
      _correlate(name, ranking.scores[name], known),
      known[order[0]],
    )
    for name, order in ranking.orders.items()
  ]
  if ranking.chosen:
    left = len(names) - len(ranking.refused)
    rows.append((_DEFAULT, left, math.nan, known[ranking.chosen]))
  mean, least = float(np.mean(accuracies)), min(accuracies)
  rows.append(('at random', len(names), math.nan, mean))
  rows.append(('the worst', len(names), math.nan, least))
  best = max(accuracies)
  return [
    Score(experiment, target, name, runs, correlation, 100 * (best - chosen))
    for name, runs, correlation, chosen in rows
  ]


def _correlate(
  criterion: str, scores: dict[str, float], accuracies: dict[str, float]
) -> float:
  goodness = [-badness(criterion, score) for score in scores.values()]
  accuracy = [accuracies[name] for name in scores]
  if len(set(goodness)) < 2 or len(set(accuracy)) < 2:
    return math.nan
  return float(stats.spearmanr(goodness, accuracy).statistic)


def tabulate(scores: Sequence[Score]) -> str:
  """Returns the scores as Markdown: all targets together, then each."""
  groups: dict[tuple[str, str], list[Score]] = collections.defaultdict(list)
  for score in scores:
    groups[score.experiment, score.target].append(score)
  parts = [
    f'Mean over {len(groups)} pairs of experiment and target:',
    _table(_average(scores, len(groups))),
  ]
  for (experiment, target), own in groups.items():
    runs = max(score.runs for score in own)
    parts += [f'## {experiment}, {target}, {runs} runs', _table(own)]
  return '\n\n'.join(parts) + '\n'


def _average(scores: Sequence[Score], groups: int) -> list[Score]:
  """Returns the mean of each criterion that is known of all targets."""
  by_name: dict[str, list[Score]] = collections.defaultdict(list)
  for score in scores:
    by_name[score.criterion].append(score)
  averaged = []
  for name, own in by_name.items():
    known = [s.correlation for s in own if math.isfinite(s.correlation)]
    correlation = float(np.mean(known)) if known else math.nan
    lost = float(np.mean([s.lost for s in own]))
    label = name if len(own) == groups else f'{name} ({len(own)} targets)'
    runs = sum(s.runs for s in own)
    averaged.append(Score('', '', label, runs, correlation, lost))
  return averaged


def _table(scores: Sequence[Score]) -> str:
  lines = ['| criterion | runs | Spearman | points lost |', '|---|---|---|---|']
  for score in scores:
    known = math.isfinite(score.correlation)
    shown = f'{score.correlation:+.2f}' if known else ''
    lines.append(
      f'| {score.criterion} | {score.runs} | {shown} | {score.lost:.1f} |'
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


def find_runs(patterns: Sequence[str]) -> list[str]:
  """Returns the folders of runs that the patterns name, each once."""
  found = [
    name
    for pattern in patterns
    for name in sorted(glob.glob(pattern))
    if (pathlib.Path(name) / 'config.json').is_file()
  ]
  if not found:
    raise UserError(f'{", ".join(patterns) or "no folder"}: there is no run.')
  return list(dict.fromkeys(found))


def measure(folders: Sequence[str]) -> list[Score]:
  """Returns the scores of criteria over runs, grouped by what they ran."""
  # Heavy: imported once the folders are known to be there.
  from moda_jax.training.candidates import open_candidates
  from moda_jax.training.recorded import read_recorded

  groups: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
  for folder in folders:
    config = read_recorded(folder).config
    groups[config.experiment, config.data.target].append(folder)
  scores = []
  for (experiment, target), own in groups.items():
    runs = [r for r in open_candidates(own) if r.oracle is not None]
    if len(runs) < _LEAST:
      print(f'{experiment}, {target}: {len(runs)} labelled runs, left out')
      continue
    accuracies = [run.oracle for run in runs if run.oracle is not None]
    candidates = [run.candidate for run in runs]
    scores += score_criteria(experiment, target, candidates, accuracies)
  if not scores:
    raise UserError(
      f'A rank correlation needs {_LEAST} runs of a target, whose labels are '
      'known.'
    )
  return scores


def main(arguments: Sequence[str] | None = None) -> None:
  """Measures the criteria over the runs that the arguments name."""
  parser = argparse.ArgumentParser(
    'python -m experiments.criteria',
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  parser.add_argument(
    'runs', nargs='+', metavar='RUN', help='runs, or patterns'
  )
  parser.add_argument('--name', default='criteria', help='of the files written')
  parser.add_argument(
    '--results', type=pathlib.Path, default='experiments/results'
  )
  options = parser.parse_args(arguments)
  cli.log_to_stdout()
  scores = measure(find_runs(options.runs))
  files = write(scores, options.results / options.name)
  print('\n'.join([tabulate(scores), *map(str, files)]))


if __name__ == '__main__':
  cli.end_by_message(main)
