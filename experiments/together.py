"""Compositions over all experiments: how far each is from MODA-FM.

  python -m experiments.together --experiments=digits_small,office31_features

Trains nothing: it reads RESULTS/compositions_EXPERIMENT.csv, the tables that
experiments.compositions has written, and writes compositions_together.md beside
them: the difference to MODA-FM for each target, on average over its seeds, and
the mean over the targets, with what is chosen without target labels below.
"""

import collections
import csv
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from absl import flags

from moda_jax import cli
from moda_jax.errors import UserError
from moda_jax.files.atomic import write_whole

EXPERIMENTS = ('digits_small', 'office31_features', 'reviews_paper')
_CHOSEN = 'chosen by '
Columns = dict[str, float]  # mean difference by target


def read_differences(
  path: pathlib.Path,
) -> tuple[dict[str, Columns], dict[str, Columns]]:
  """Returns the differences by composition, and those of choices.

  Args:
    path: a table of experiments.compositions, .csv.
  """
  try:
    with path.open(newline='') as file:
      lines = list(csv.DictReader(file))
  except OSError as error:
    raise UserError(
      f'{path} cannot be read: {error.strerror}. experiments.compositions '
      'writes it.'
    ) from error
  rows: dict = collections.defaultdict(lambda: collections.defaultdict(list))
  choices: dict = collections.defaultdict(lambda: collections.defaultdict(list))
  for line in lines:
    if not line['difference']:
      continue
    target, difference = line['target'], float(line['difference'])
    rows[line['composition']][target].append(difference)
    for name, value in line.items():
      if name.startswith(_CHOSEN) and value == '1':
        choices[name.removeprefix(_CHOSEN)][target].append(difference)
  return _average(rows), _average(choices)


def _average(
  found: Mapping[str, Mapping[str, Sequence[float]]],
) -> dict[str, Columns]:
  return {
    name: {target: float(np.mean(own)) for target, own in columns.items()}
    for name, columns in found.items()
  }


def join(tables: Sequence[Mapping[str, Columns]]) -> dict[str, Columns]:
  """Returns the rows of all tables, each with the targets of all."""
  joined: dict[str, Columns] = {}
  for table in tables:
    for name, columns in table.items():
      joined[name] = joined.get(name, {}) | columns
  return joined


def tabulate(rows: Mapping[str, Columns], targets: Sequence[str]) -> str:
  """Returns Markdown: those with most targets first, the best of them first."""
  ordered = sorted(
    rows.items(), key=lambda row: (-len(row[1]), -np.mean([*row[1].values()]))
  )
  lines = [
    '| | ' + ' | '.join(targets) + ' | mean | targets |',
    '|---' * (3 + len(targets)) + '|',
  ]
  for name, columns in ordered:
    cells = [
      f'{columns[target]:+.1f}' if target in columns else '–'
      for target in targets
    ]
    values = list(columns.values())
    mean = f'{np.mean(values):+.1f}'
    if len(values) > 1:
      mean += f' ± {np.std(values, ddof=1) / np.sqrt(len(values)):.1f}'
    lines.append(f'| `{name}` | {" | ".join(cells)} | {mean} | {len(values)} |')
  return '\n'.join(lines)


def write(experiments: Sequence[str], results: pathlib.Path) -> pathlib.Path:
  """Writes the table of the experiments; returns its path."""
  read = [
    read_differences(results / f'compositions_{name}.csv')
    for name in experiments
  ]
  rows, choices = (join(tables) for tables in zip(*read, strict=True))
  targets = list(dict.fromkeys(t for own in rows.values() for t in own))
  path = results / 'compositions_together.md'
  with write_whole(path) as file:
    file.write(
      f'Points of accuracy above `moda_fm`, {", ".join(experiments)}: for each '
      'target the mean over its seeds, then the mean over the targets ± its '
      f'standard error.\n\n{tabulate(rows, targets)}\n\n'
      'What is chosen without target labels, by criterion, at the targets and '
      f'seeds where all were judged:\n\n{tabulate(choices, targets)}\n'
    )
  return path


def main() -> None:
  """Reads the tables and writes one."""
  given: Any = flags.FLAGS
  print(write(given.experiments, pathlib.Path(given.results)))


if __name__ == '__main__':
  flags.DEFINE_list(
    'experiments', list(EXPERIMENTS), 'experiments with their scales'
  )
  flags.DEFINE_string('results', 'experiments/results', 'folder of the tables')
  cli.run(main)
