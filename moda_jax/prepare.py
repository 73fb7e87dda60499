"""Prepares the data sets of an experiment from the files people have.

  python -m moda_jax.prepare digits --manual_dir=FOLDER_WITH_THE_FILES
  python -m moda_jax.prepare all --manual_dir=FOLDER --data_dir=~/datasets
  python -m moda_jax.prepare digits --download

Finds what is there, checks it, prepares it with TFDS and prints a table. Run
again, it prepares what has been added since. With --download, files that are on
the network are fetched into the folder first: MNIST, SVHN, and the photographs
that MNIST-M is rebuilt from; nothing is downloaded otherwise. The folder
may hold archives, unpacked folders, .mat, .npz and idx files; what is missing
is named, with the way to get it. Exit status 2 if something is not prepared.
"""

import argparse
import os
import pathlib
import time
from collections.abc import Sequence

import tensorflow_datasets as tfds

from moda_jax import cli
from moda_jax.datasets import checksums, downloads, preparation
from moda_jax.errors import UserError

_COLUMNS = (
  'domain',
  'split',
  'images',
  'classes',
  'source',
  'checksum',
  'status',
)
# Not in the paper, and needs further packages.
_OPTIONAL_IN_ALL = 'mini'


def prepare(
  groups: Sequence[str], manual_dir: pathlib.Path, data_dir: str | None
) -> dict[str, list[preparation.Outcome]]:
  """Prepares all domains of the groups; one that fails does not stop others."""
  outcomes: dict[str, list[preparation.Outcome]] = {}
  for group in groups:
    outcomes[group] = []
    for domain, candidates in preparation.GROUPS[group].items():
      start = time.monotonic()
      outcome = preparation.prepare_domain(
        domain, candidates, manual_dir, data_dir
      )
      outcomes[group].append(outcome)
      seconds = time.monotonic() - start
      print(f'{group}/{domain}: {outcome.status} ({seconds:.1f} s)', flush=True)
  return outcomes


def make_rows(
  group: str, outcome: preparation.Outcome
) -> list[tuple[str, ...]]:
  """Returns the table's rows for one domain, one per split."""
  name = f'{group}/{outcome.domain}'
  if outcome.builder is None or outcome.candidate is None:
    return [(name, '', '0', '', '', '', outcome.status)]
  info = outcome.builder.info
  rows: list[tuple[str, ...]] = []
  for split, split_info in info.splits.items():
    source = outcome.sources.get(split)
    digest = source.sha256[:12] if source else ''
    if source and source.verified:
      digest += ' verified'
    rows.append(
      (
        name,
        split,
        f'{split_info.num_examples:,}',
        str(info.features['label'].num_classes),
        f'{outcome.candidate.dataset}: {source.file if source else "TFDS"}',
        digest,
        f'{outcome.status}; {describe(outcome, split)}'.rstrip('; '),
      )
    )
  return rows


def describe(outcome: preparation.Outcome, split: str) -> str:
  """Says whether a split is the complete original, a subset or a stand-in."""
  candidate, builder = outcome.candidate, outcome.builder
  if candidate is None or builder is None:
    return ''
  if candidate.stands_in:
    return candidate.stands_in
  counts = checksums.ORIGINAL_COUNTS.get(candidate.dataset)
  if counts is None:
    return ''
  count = builder.info.splits[split].num_examples
  if count != counts[split]:
    kind = 'subset' if count < counts[split] else 'NOT the original'
    return f'{kind}: {count:,} of {counts[split]:,}'
  source = outcome.sources.get(split)
  if source and source.verified:
    return 'complete'
  known = candidate.dataset.split('/')[0] in checksums.WITH_SHA256
  return 'counts match, the checksum does not' if known else 'counts match'


def format_table(rows: Sequence[Sequence[str]]) -> str:
  """Returns the rows as aligned columns, with numbers to the right."""
  rows = [_COLUMNS, *rows]
  widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
  lines = []
  for row in rows:
    cells = [
      cell.rjust(width) if title in ('images', 'classes') else cell.ljust(width)
      for title, cell, width in zip(_COLUMNS, row, widths, strict=True)
    ]
    lines.append('  '.join(cells).rstrip())
  return '\n'.join(lines)


def _report(outcomes: dict[str, list[preparation.Outcome]]) -> None:
  rows = [
    row
    for group, domains in outcomes.items()
    for outcome in domains
    for row in make_rows(group, outcome)
  ]
  print('\n' + format_table(rows))
  told = set()
  for group, domains in outcomes.items():
    for outcome in domains:
      if not outcome.problem or outcome.problem in told:
        continue
      told.add(outcome.problem)
      stands_in = outcome.candidate and outcome.candidate.stands_in
      verdict = stands_in or outcome.status
      text = outcome.problem.replace('\n', '\n  ')
      print(f'\n{group}/{outcome.domain}: {verdict}\n  {text}')


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
  parser = argparse.ArgumentParser(
    'python -m moda_jax.prepare',
    usage=argparse.SUPPRESS,
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  parser.add_argument('what', choices=[*preparation.GROUPS, 'all'])
  parser.add_argument(
    '--manual_dir',
    type=pathlib.Path,
    help='the folder with the files (default: DATA_DIR/downloads/manual)',
  )
  parser.add_argument(
    '--data_dir',
    default=tfds.core.constants.DATA_DIR,
    help='where TFDS keeps data sets (default: $TFDS_DATA_DIR, or %(default)s)',
  )
  parser.add_argument(
    '--download',
    action='store_true',
    help='fetch what is on the network first (digits: some 330 MB)',
  )
  return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
  """Prepares what the arguments name, or raises `UserError`."""
  options = _parse(arguments)
  data_dir = pathlib.Path(os.path.expanduser(options.data_dir))
  manual_dir = options.manual_dir
  if manual_dir is None:
    manual_dir = data_dir / 'downloads' / 'manual'
  elif not manual_dir.is_dir() and not options.download:
    raise UserError(f'--manual_dir={manual_dir} is not a folder.')
  every = options.what == 'all'
  groups = list(preparation.GROUPS) if every else [options.what]
  with preparation.lock(data_dir):
    if options.download:
      for group in groups:
        downloads.fetch_group(group, manual_dir)
    outcomes = prepare(groups, manual_dir, str(data_dir))
  _report(outcomes)
  failed = [
    f'{group}/{outcome.domain}'
    for group, domains in outcomes.items()
    for outcome in domains
    if outcome.builder is None and not (every and group == _OPTIONAL_IN_ALL)
  ]
  if failed:
    raise UserError(f'\nNot prepared: {", ".join(failed)}.')


def run() -> None:
  """Runs the command: mistakes of the user end in one message."""
  cli.end_by_message(main)


if __name__ == '__main__':
  run()
