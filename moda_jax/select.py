r"""Chooses among finished runs without a label of the target.

  python -m moda_jax.select runs/source_only runs/fm runs/moda_fm
  python -m moda_jax.select runs/* --criterion=entropy --output=ranking.json

All runs must have one target and the same classes. Each predicts the same
examples of the target, at most 2,000, and is ranked by every criterion of
moda_jax/selection and, of three runs and more, by its agreement with the mean
prediction of all (EnsV, Hu et al. 2024). Runs whose mean prediction has
collapsed onto few classes are refused. Agreement chooses by default: its
authors find that it never takes the worst of many, and no method is trained for
it, as several are for low entropy, which chooses between two runs.
source_accuracy, weighted_accuracy and dev_risk (DEV, You et al. 2019) are there
for runs with holdout above 0.

Runs at values that a search of the same config has drawn can be ranked by the
accuracy that these reached there on left-out sources:
  python -m moda_jax.select runs/* --search=runs/search/values.json \
    --criterion=left_out

Where the labels of the target are known, the accuracy is shown as the oracle.
It chooses nothing.
"""

import argparse
import json
import os
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from moda_jax import cli
from moda_jax.errors import UserError

if TYPE_CHECKING:
  from moda_jax.selection.ranking import Ranking
  from moda_jax.training.candidates import RunCandidate
  from moda_jax.training.left_out import Search

_ORACLE = 'oracle (target labels)'
_SHOWN = 3  # evaluations of a run, by each criterion


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
  parser = argparse.ArgumentParser(
    'python -m moda_jax.select',
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  parser.add_argument('runs', nargs='+', metavar='RUN', help='a run')
  parser.add_argument('--criterion', default='', help='what chooses')
  parser.add_argument(
    '--search', type=pathlib.Path, help='the values.json of a search'
  )
  parser.add_argument(
    '--output', type=pathlib.Path, help='a .json to write the ranking to'
  )
  return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
  """Ranks the runs that the arguments name, or raises `UserError`."""
  options = _parse(arguments)
  paths = [os.path.abspath(run) for run in options.runs]
  if len(set(paths)) < len(paths):
    raise UserError('a run is given twice; each is ranked once.')
  cli.log_to_stdout()
  # The heavy imports wait until the arguments are known to be good.
  from moda_jax.selection.ranking import check_criterion, rank
  from moda_jax.training.candidates import open_candidates
  from moda_jax.training.left_out import read_search

  if options.criterion:
    check_criterion(options.criterion)
  search = read_search(options.search) if options.search else None
  runs = open_candidates(options.runs)
  if search is not None:
    runs = [_add_left_out(run, search) for run in runs]
  ranking = rank([run.candidate for run in runs], options.criterion)
  print(describe(runs, ranking))
  if options.output is not None:
    _write(options.output, ranking, runs)


def _add_left_out(run: 'RunCandidate', search: 'Search') -> 'RunCandidate':
  """Returns the run with its accuracy in a search, where that knows it."""
  from moda_jax.selection.ranking import LEFT_OUT

  score, why = search.find_accuracy(run.trained.model.config)
  if score is None:
    print(f'mind, {run.candidate.name}: not of the search: {why}.')
    return run
  scores = {**run.candidate.scores, LEFT_OUT: score}
  return run._replace(candidate=run.candidate._replace(scores=scores))


def describe(runs: 'Sequence[RunCandidate]', ranking: 'Ranking') -> str:
  """Returns tables of runs and of evaluations, and the choice, as text."""
  parts = [
    _format(_tabulate_runs(runs, ranking)),
    'In brackets: the place by that criterion, 1 for the best.',
  ]
  for run in runs:
    rows = _tabulate_evaluations(run)
    if len(rows) > 1:
      step = int(run.trained.state.step)
      title = f'{run.candidate.name}, which is taken at step {step}; the best'
      parts.append(f'{title} evaluations over time:\n{_format(rows)}')
  warnings = [_warn_of_sources(runs, ranking), _warn_of_twins(runs)]
  parts += [f'mind: {warning}' for warning in warnings if warning]
  parts += [
    f'mind, {run.candidate.name}: {caution}'
    for run in runs
    if (caution := run.trained.model.method.caution)
  ]
  parts += [f'refused {name}: {why}' for name, why in ranking.refused.items()]
  chosen = f'chosen by {ranking.criterion}: {ranking.chosen}'
  parts.append(chosen if ranking.chosen else 'chosen: none')
  return '\n\n'.join(parts) + f'\n{ranking.reason}'


def _warn_of_sources(runs: 'Sequence[RunCandidate]', ranking: 'Ranking') -> str:
  """Says which criteria are of other examples in each run, if any are."""
  from moda_jax.selection.criteria import CRITERIA

  held = (name for name, c in CRITERIA.items() if c.needs_held)
  read = [name for name in held if name in ranking.orders]
  sources = {frozenset(run.trained.model.config.data.sources) for run in runs}
  if len(sources) < 2 or not read:
    return ''
  return (
    f'the runs have different sources, and {", ".join(read)} read examples of '
    'these: they do not compare such runs.'
  )


def _warn_of_twins(runs: 'Sequence[RunCandidate]') -> str:
  """Says which runs compute the same, if any do."""
  from moda_jax.training.meaning import describe_meaning

  known: dict[str, list[str]] = {}
  for run in runs:
    meaning = describe_meaning(run.trained.model.config)
    names = known.setdefault(json.dumps(meaning, sort_keys=True), [])
    names.append(run.candidate.name)
  twins = [' and '.join(names) for names in known.values() if len(names) > 1]
  if not twins:
    return ''
  return (
    f'{"; ".join(twins)} are runs of the same config and seed, and count as '
    'many where agreement is measured.'
  )


def _tabulate_runs(
  runs: 'Sequence[RunCandidate]', ranking: 'Ranking'
) -> list[list[str]]:
  """Returns scores with their places, the chosen run first."""
  order = list(ranking.orders.get(ranking.criterion, ()))
  order += [r.candidate.name for r in runs if r.candidate.name not in order]
  oracles = {run.candidate.name: run.oracle for run in runs}
  rows = [['run', *ranking.orders, _ORACLE]]
  for name in order:
    cells = [
      _show_place(name, ranking.orders[key], ranking.scores[key])
      for key in ranking.orders
    ]
    rows.append([name, *cells, _show_accuracy(oracles[name])])
  return rows


def _show_place(
  name: str, order: Sequence[str], scores: dict[str, float]
) -> str:
  if name not in scores:
    return '–'
  return f'{scores[name]:.4g} ({order.index(name) + 1})'


def _show_accuracy(accuracy: float | None) -> str:
  return 'unknown' if accuracy is None else f'{100 * accuracy:.2f} %'


def _tabulate_evaluations(run: 'RunCandidate') -> list[list[str]]:
  """Returns the best steps by each criterion, and their accuracies."""
  from moda_jax.training.evaluation import ACCURACY
  from moda_jax.training.judging import metric

  rows = [['criterion', 'place', 'step', 'value', _ORACLE]]
  lines = {line['step']: line for line in run.evaluations}
  for name, steps in _order_evaluations(run).items():
    for place, step in enumerate(steps[:_SHOWN], 1):
      value = f'{lines[step][metric(name)]:.4g}'
      oracle = _show_accuracy(lines[step].get(ACCURACY))
      rows.append([name, f'{place}', f'{step}', value, oracle])
  return rows


def _order_evaluations(run: 'RunCandidate') -> dict[str, list[int]]:
  """Returns the steps of a run's evaluations by criterion, the best first."""
  from moda_jax.selection.criteria import CRITERIA
  from moda_jax.training.kept import order_evaluations

  classes = len(run.trained.model.inputs.classes)
  orders = {
    name: order_evaluations(run.evaluations, name, classes) for name in CRITERIA
  }
  return {name: steps for name, steps in orders.items() if steps}


def _format(rows: Sequence[Sequence[str]]) -> str:
  widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
  return '\n'.join(
    '  '.join(
      cell.ljust(width) for cell, width in zip(row, widths, strict=True)
    ).rstrip()
    for row in rows
  )


def _write(
  path: pathlib.Path, ranking: 'Ranking', runs: 'Sequence[RunCandidate]'
) -> None:
  from moda_jax.files.atomic import write_whole

  values: dict[str, Any] = ranking._asdict()
  values['evaluations'] = {
    run.candidate.name: _order_evaluations(run) for run in runs
  }
  try:
    with write_whole(path) as file:
      file.write(json.dumps(values, indent=2) + '\n')
  except OSError as error:
    raise UserError(f"--output='{path}' cannot be written: {error}.") from error


if __name__ == '__main__':
  cli.end_by_message(main)
