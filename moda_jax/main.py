"""Trains or evaluates what a config describes.

  python -m moda_jax.main --config=configs/digits.py:mnistm --workdir=runs/x

The same command again resumes. Single values are overridden by flags such as
--config.mu_s=0.4.
"""

import sys
from collections.abc import Sequence

from absl import app, flags
from ml_collections import config_flags

from moda_jax import progress
from moda_jax.errors import RunEnd, UserError

_CONFIG = config_flags.DEFINE_config_file(
  'config', None, 'The config file, with its argument after a colon.'
)
_WORKDIR = flags.DEFINE_string(
  'workdir', None, "The run's folder: checkpoints, metrics, report."
)
_MODE = flags.DEFINE_enum('mode', 'train', ['train', 'evaluate'], 'What to do.')


def main(argv: Sequence[str]) -> None:
  """Runs the mode; the heavy imports wait until the flags are known good."""
  if len(argv) > 1:
    raise UserError(f'unexpected arguments {argv[1:]}; see --help.')
  from moda_jax import report, train

  progress.log_to_stdout()
  if _MODE.value == 'evaluate':
    train.evaluate(_CONFIG.value, _WORKDIR.value)
    return
  outcome = train.train(_CONFIG.value, _WORKDIR.value)
  page = report.write_run_page(outcome, _WORKDIR.value)
  print(f'report: {page}')


def run() -> None:
  """Entry point: mistakes of the user end in one message, not in a trace."""
  flags.mark_flags_as_required(['config', 'workdir'])
  try:
    app.run(main)
  except RunEnd as end:
    print(end, file=sys.stderr)
    sys.exit(end.status)


if __name__ == '__main__':
  run()
