"""Accuracies of methods by target, beside the paper's, in several formats."""

import collections
import json
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments.figures import style
from experiments.figures.published import published
from experiments.figures.times import format_minutes
from experiments.runs.records import Line, find_values
from experiments.runs.scales import Setting
from moda_jax.files.atomic import write_whole
from moda_jax.objectives import METHODS


class Row(NamedTuple):
  """The runs of one method at one set of values.

  Attributes:
    method: its name.
    values: what differs from the setting, as text; empty for the setting's own.
    runs: the lines, by target.
  """

  method: str
  values: str
  runs: dict[str, list[Line]]

  def accuracies(self, target: str) -> list[float]:
    """Returns the accuracies (%) on a target, one per seed."""
    return [100 * run['accuracy'] for run in self.runs.get(target, [])]

  @property
  def seeds(self) -> str:
    """How many seeds there are: `5 seeds`, or `1 to 5 seeds` by target."""
    counts = {len(runs) for runs in self.runs.values()}
    number = ' to '.join(str(n) for n in sorted({min(counts), max(counts)}))
    return f'{number} seed{"s" if max(counts) > 1 else ""}'


class Table(NamedTuple):
  """All rows of a setting.

  Attributes:
    setting: the experiment at its scale.
    targets: the columns.
    rows: in the order of `METHODS`, the setting's own values first.
  """

  setting: Setting
  targets: list[str]
  rows: list[Row]

  @property
  def title(self) -> str:
    """The setting, its length and the number of seeds, and what rows name."""
    title = f'{self.setting.title}, {self.seeds}'
    if any(self.name_differences(row) for row in self.rows):
      title += '; a row names what differs from this'
    return title

  @property
  def seeds(self) -> str:
    """How many seeds most rows have."""
    counts = collections.Counter(row.seeds for row in self.rows)
    return counts.most_common(1)[0][0]

  def name_differences(self, row: Row) -> str:
    """Returns in what a row differs from the title; '' if in nothing."""
    seeds = row.seeds if row.seeds != self.seeds else ''
    return '; '.join(filter(None, [row.values, seeds]))

  def published(self, row: Row, target: str) -> tuple[float, float] | None:
    """Returns the paper's mean and deviation (%), where they belong here.

    They do not where a row differs from the setting, be it in its length.
    """
    if not self.setting.has_published or row.values:
      return None
    return published(self.setting.experiment, row.method, target)


def make_table(setting: Setting, lines: Iterable[Line]) -> Table:
  """Sorts lines into rows and columns; of equal runs the last line counts."""
  rows: dict[tuple[str, str], dict[str, dict[int, Line]]] = {}
  for line in lines:
    key = (line['method'], format_values(find_values(line, setting)))
    targets = rows.setdefault(key, {})
    targets.setdefault(line['target'], {})[line['seed']] = line
  order = list(METHODS)
  made = [
    Row(method, values, {t: _by_seed(runs) for t, runs in targets.items()})
    for (method, values), targets in sorted(
      rows.items(), key=lambda item: (order.index(item[0][0]), item[0][1])
    )
  ]
  seen = {target for row in made for target in row.runs}
  columns = [t for t in setting.targets if t in seen]
  columns += sorted(seen - set(columns))
  return Table(setting, columns, made)


def _by_seed(runs: dict[int, Line]) -> list[Line]:
  return [runs[seed] for seed in sorted(runs)]


def format_values(values: dict[str, Any]) -> str:
  """Formats differing values as `epochs=10, mu_c=0.5`."""
  return ', '.join(f'{name}={_plain(v)}' for name, v in values.items())


def _plain(value: Any) -> str:
  return value if isinstance(value, str) else json.dumps(value)


def write_table(table: Table, path: pathlib.Path) -> list[pathlib.Path]:
  """Writes `.md`, `.tex` and `.csv`; returns the paths."""
  written = []
  for kind, text in (
    ('md', format_markdown(table)),
    ('tex', format_latex(table)),
  ):
    file_path = path.with_name(f'{path.name}.{kind}')
    with write_whole(file_path) as file:
      file.write(text)
    written.append(file_path)
  written.append(style.write_csv(path, _CSV, _csv_rows(table)))
  return written


def format_markdown(table: Table) -> str:
  """Returns all targets side by side, then each by itself."""
  parts = [
    f'{table.title}.\n',
    f'{_explain(table.setting)}\n',
    _format_matrix(table),
    *(_format_target(table, target) for target in table.targets),
  ]
  return '\n'.join(parts)


def _explain(setting: Setting) -> str:
  text = 'Accuracy (%) at the last step, mean ± standard deviation over seeds'
  if not setting.has_published:
    return f'{text}.'
  whose = '' if setting.scale == 'paper' else ', at its own scale'
  return f"{text}; in brackets the paper's mean of five{whose}."


def _label(table: Table, row: Row) -> str:
  differences = table.name_differences(row)
  return f'`{row.method}`' + (f' ({differences})' if differences else '')


def _format_matrix(table: Table) -> str:
  """Returns one row per method: a column per target, and their mean."""
  many = len(table.targets) > 1
  header = ['method', *table.targets, *(['mean'] if many else [])]
  lines = [_cells(header), '|---' * len(header) + '|']
  for row in table.rows:
    cells = [_cell(table, row, target) for target in table.targets]
    if many:
      cells.append(_mean_cell(table, row))
    lines.append(_cells([_label(table, row), *cells]))
  return '\n'.join(lines) + '\n'


def _cell(table: Table, row: Row, target: str) -> str:
  figure = table.published(row, target)
  mean = figure[0] if figure else None
  return summarise(row.accuracies(target)) + _in_brackets(mean)


def _mean_cell(table: Table, row: Row) -> str:
  """Returns the mean over the targets, where all of them have runs."""
  ours = [row.accuracies(target) for target in table.targets]
  if not all(ours):
    return ''
  mean = np.mean([np.mean(values) for values in ours])
  paper = [table.published(row, target) for target in table.targets]
  known = [figure[0] for figure in paper if figure]
  theirs = float(np.mean(known)) if len(known) == len(paper) else None
  return f'{mean:.1f}{_in_brackets(theirs)}'


def _format_target(table: Table, target: str) -> str:
  timed, minutes = format_minutes([row.runs.get(target) for row in table.rows])
  lines = [
    f'Target {target}:\n',
    _cells(['method', 'accuracy (%)', 'paper (%)', 'seeds', timed, '']),
    '|---' * 6 + '|',
  ]
  for row, time in zip(table.rows, minutes, strict=True):
    runs = row.runs.get(target, [])
    if not runs:
      continue
    figure = table.published(row, target)
    cells = [
      _label(table, row),
      summarise(row.accuracies(target)),
      f'{figure[0]} ± {figure[1]}' if figure else '',
      str(len(runs)),
      time,
      runs[-1]['caution'],
    ]
    lines.append(_cells(cells))
  return '\n'.join(lines) + '\n'


def _cells(cells: Iterable[str]) -> str:
  return f'| {" | ".join(cells)} |'


def summarise(values: Sequence[float]) -> str:
  """Returns mean ± sample standard deviation; of a single run, the mean."""
  if not values:
    return ''
  deviation = f' ± {np.std(values, ddof=1):.1f}' if len(values) > 1 else ''
  return f'{np.mean(values):.1f}{deviation}'


def _in_brackets(value: float | None) -> str:
  return f' ({value:.1f})' if value is not None else ''


_CSV = (
  'experiment',
  'scale',
  'target',
  'method',
  'values',
  'seeds',
  'mean',
  'standard deviation',
  'paper mean',
  'paper standard deviation',
)


def _csv_rows(table: Table) -> Iterable[list[object]]:
  setting = table.setting
  for row in table.rows:
    for target in table.targets:
      ours = row.accuracies(target)
      paper = table.published(row, target) or ('', '')
      if ours:
        spread = round(np.std(ours, ddof=1), 3) if len(ours) > 1 else ''
        start = [setting.experiment, setting.scale, target, row.method]
        mean = round(float(np.mean(ours)), 3)
        yield [*start, row.values, len(ours), mean, spread, *paper]


def format_latex(table: Table) -> str:
  """Returns a table of LaTeX with booktabs' rules and a footnote."""
  names = [style.domain_name(target) for target in table.targets]
  lines = [
    f'% {table.title}',
    r'\begin{tabular}{l' + 'c' * len(names) + '}',
    r'\toprule',
    ' & '.join(['', *names]) + r' \\',
    r'\midrule',
  ]
  for row in table.rows:
    label = style.method_look(row.method).name.replace('³', '$^3$')
    differences = table.name_differences(row)
    if differences:
      label += rf' \small({_escape(differences)})'
    cells = [_escape(_cell(table, row, t)) for t in table.targets]
    lines.append(' & '.join([label, *cells]) + r' \\')
  about = _escape(f'{table.title}. {_explain(table.setting)}')
  end = (
    rf'\multicolumn{{{len(names) + 1}}}{{p{{0.9\linewidth}}}}'
    rf'{{\footnotesize {about}}} \\'
  )
  return '\n'.join([*lines, r'\bottomrule', end, r'\end{tabular}', ''])


def _escape(text: str) -> str:
  for letter in '_%&#':
    text = text.replace(letter, f'\\{letter}')
  return text.replace('×', r'$\times$').replace('±', r'$\pm$')
