"""Compositions beside MODA-FM: accuracies, differences, choices."""

import collections
import pathlib
from collections.abc import Mapping, Sequence

import numpy as np

from experiments.figures import composition_figure, style
from experiments.figures.composition_choice import (
  Choice,
  Runs,
  choose,
  find_tasks,
)
from experiments.figures.markdown import table_lines
from experiments.figures.method_table import summarise
from experiments.runs.records import Line
from experiments.selection.agreeing import Agreements, Task
from moda_jax.errors import UserError
from moda_jax.files.atomic import write_whole

REFERENCE = 'moda_fm'


def write(
  title: str,
  found: Mapping[str, Sequence[Line]],
  path: pathlib.Path,
  agreements: Agreements | None = None,
) -> list[pathlib.Path]:
  """Writes `.md`, `.csv`, `.png` and `.pdf`; returns the paths.

  Args:
    title: of tables and figure.
    found: the lines of each composition.
    path: of the files, without their endings.
    agreements: of the compositions, where they are known.
  """
  runs = {
    name: {(line['target'], line['seed']): line for line in lines}
    for name, lines in found.items()
    if lines
  }
  if REFERENCE not in runs:
    raise UserError(f'There are no runs of {REFERENCE} to compare with yet.')
  if len(runs) < 2:
    raise UserError(f'There are only runs of {REFERENCE} to show yet.')
  targets = list(dict.fromkeys(target for target, _ in find_tasks(runs)))
  choices = choose(runs, agreements)
  rows = _find_differences(targets, runs)
  return [
    _write_markdown(path, title, targets, runs, choices),
    style.write_csv(path, *_csv_rows(targets, runs, choices)),
    *style.save(composition_figure.draw(title, targets, rows), path),
  ]


def accuracies(own: Mapping[Task, Line]) -> dict[Task, float]:
  """Returns the accuracies (%) of one composition."""
  return {task: 100 * line['accuracy'] for task, line in own.items()}


def compare(
  own: Mapping[Task, float], other: Mapping[Task, float]
) -> tuple[float, float, int]:
  """Returns mean difference, its standard error, and of how many pairs.

  A pair is one target and seed. Of a single pair the error is NaN.
  """
  pairs = [own[task] - other[task] for task in own if task in other]
  if not pairs:
    return np.nan, np.nan, 0
  few = len(pairs) < 2
  error = np.nan if few else np.std(pairs, ddof=1) / np.sqrt(len(pairs))
  return float(np.mean(pairs)), float(error), len(pairs)


def _write_markdown(
  path: pathlib.Path,
  title: str,
  targets: Sequence[str],
  runs: Runs,
  choices: Sequence[Choice],
) -> pathlib.Path:
  text = [
    f'{title}.',
    '',
    'Accuracy (%) at the last step, mean ± standard deviation over seeds; the '
    f'difference to `{REFERENCE}` at the same target and seed, mean ± standard '
    'error over these pairs; how often it is chosen without target labels.',
    '',
    *table_lines(*_make_rows(targets, runs, choices)),
    '',
    *_explain_choices(targets, runs, choices),
    '',
  ]
  path = path.with_name(f'{path.name}.md')
  path.parent.mkdir(parents=True, exist_ok=True)
  with write_whole(path) as file:
    file.write('\n'.join(text))
  return path


def _make_rows(
  targets: Sequence[str], runs: Runs, choices: Sequence[Choice]
) -> tuple[list[str], list[list[str]]]:
  header = ['composition', *targets, 'mean', f'− `{REFERENCE}`', 'pairs']
  header += ['chosen'] * bool(choices)
  reference = accuracies(runs[REFERENCE])
  rows = []
  for name, own in runs.items():
    values = accuracies(own)
    row = [f'`{name}`', *_target_cells(targets, values)]
    if name == REFERENCE:
      row += ['', '']
    else:
      difference, error, count = compare(values, reference)
      row += [_signed(difference, error), str(count)]
    if choices:
      own_tasks = choices[0].chosen
      row.append(f'{list(own_tasks.values()).count(name)} of {len(own_tasks)}')
    rows.append(row)
  return header, rows


def _target_cells(
  targets: Sequence[str], values: Mapping[Task, float]
) -> list[str]:
  """Returns a cell for each target, and the mean where none is missing."""
  by_target = [_of_target(values, target) for target in targets]
  mean = ''
  if all(by_target):
    mean = f'{np.mean([np.mean(v) for v in by_target]):.1f}'
  return [*map(summarise, by_target), mean]


def _of_target(values: Mapping[Task, float], target: str) -> list[float]:
  return [value for (own, _), value in values.items() if own == target]


def _signed(difference: float, error: float) -> str:
  if np.isnan(difference):
    return ''
  spread = '' if np.isnan(error) else f' ± {error:.1f}'
  return f'{difference:+.1f}{spread}'


def _explain_choices(
  targets: Sequence[str], runs: Runs, choices: Sequence[Choice]
) -> list[str]:
  """Returns the table of choices, or why there is none."""
  if not choices:
    return [
      'Nothing is chosen without target labels: that needs a target and seed '
      'at which every composition was judged (see --judged).'
    ]
  reference = accuracies(runs[REFERENCE])
  header = ['chosen by', *targets, 'mean', f'− `{REFERENCE}`']
  header += ['below the best', 'Spearman']
  rows = []
  for choice in choices:
    difference, error, _ = compare(choice.accuracies, reference)
    rows.append(
      [
        choice.criterion,
        *_target_cells(targets, choice.accuracies),
        _signed(difference, error),
        f'{abs(np.mean(list(choice.below.values()))):.1f}',
        _mean_correlation(choice),
      ]
    )
  return [
    f'Chosen among {len(runs)} compositions at each target and seed (pairs: '
    f'{len(choices[-1].chosen)}); what lies below the best of them is what the '
    "choice costs. Spearman's correlation is that of the criterion with the "
    'accuracy, on average over the pairs.',
    '',
    *table_lines(header, rows),
    '',
    f'Which one, by {choices[0].criterion}:',
    '',
    *(f'- {target}: {_count(choices[0], target)}' for target in targets),
  ]


def _mean_correlation(choice: Choice) -> str:
  known = [c for c in choice.correlations.values() if np.isfinite(c)]
  return f'{np.mean(known):+.2f}' if known else ''


def _count(choice: Choice, target: str) -> str:
  """Returns the compositions chosen for a target, the most frequent first."""
  own = [name for (t, _), name in choice.chosen.items() if t == target]
  counted = collections.Counter(own).most_common()
  return ', '.join(f'`{name}` ({n})' for name, n in counted) or 'none'


def _csv_rows(
  targets: Sequence[str], runs: Runs, choices: Sequence[Choice]
) -> tuple[list[str], list[list[object]]]:
  header = ['composition', 'target', 'seed', 'accuracy', 'difference']
  choices = [choice for choice in choices if choice.chosen]
  header += [f'chosen by {choice.criterion}' for choice in choices]
  reference = accuracies(runs[REFERENCE])
  rows: list[list[object]] = []
  for name, own in runs.items():
    for task, value in accuracies(own).items():
      known = task in reference
      difference = round(value - reference[task], 3) if known else ''
      picked = [int(c.chosen.get(task) == name) for c in choices]
      rows.append([name, *task, round(value, 3), difference, *picked])
  rows.sort(key=lambda row: targets.index(str(row[1])))
  return header, rows


def _find_differences(
  targets: Sequence[str], runs: Runs
) -> dict[str, composition_figure.Row]:
  """Returns what the figure shows of each composition."""
  reference = accuracies(runs[REFERENCE])
  rows = {}
  for name, own in runs.items():
    if name == REFERENCE:
      continue
    values = accuracies(own)
    by_target = [
      compare({t: v for t, v in values.items() if t[0] == target}, reference)
      for target in targets
    ]
    mean, error, _ = compare(values, reference)
    rows[name] = composition_figure.Row([d for d, *_ in by_target], mean, error)
  return rows
