"""Writes the page of a run, or of several runs to compare.

  python -m moda_jax.report runs/mine
  python -m moda_jax.report runs/source_only runs/moda_fm --output=runs/compared

One self-contained file, index.html: in RUN/report for one run, and for several
in the folder `report` beside them. Where the runs' data can still be read, it
shows predictions and pictures too. A run of method=source_only among them tells
whether adaptation helped.
"""

import argparse
import os
import pathlib
from collections.abc import Sequence

from moda_jax import cli
from moda_jax.errors import UserError


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
  parser = argparse.ArgumentParser(
    'python -m moda_jax.report',
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  parser.add_argument('runs', nargs='+', metavar='RUN', help='a run')
  parser.add_argument('--output', type=pathlib.Path, help='folder of the page')
  return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
  """Writes the page that the arguments ask for, or raises `UserError`."""
  options = _parse(arguments)
  paths = [pathlib.Path(run).absolute() for run in options.runs]
  if len(set(paths)) < len(paths):
    raise UserError('a run is given twice; each is shown once.')
  cli.log_to_stdout()
  # The heavy imports wait until the arguments are known to be good.
  from moda_jax.report import page, runs

  shown = runs.open_runs(options.runs)
  folder = options.output
  if folder is None and len(paths) == 1:
    folder = paths[0] / 'report'
  elif folder is None:
    folder = pathlib.Path(os.path.commonpath([p.parent for p in paths]))
    folder /= 'report'
  try:
    print(f'report: {page.write_runs(folder, shown)}')
  except OSError as error:
    raise UserError(
      f"--output='{folder}' cannot be written to: {error}."
    ) from error


if __name__ == '__main__':
  cli.end_by_message(main)
