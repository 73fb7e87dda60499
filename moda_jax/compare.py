r"""Trains several methods on the same data and chooses one without labels.

  python -m moda_jax.compare --config=folder:PATH,target=DOMAIN --workdir=RUNS
  python -m moda_jax.compare --config=mini:mnistm --workdir=runs/compared \
    --methods=moda_fm,mdan --leave_one_out
  python -m moda_jax.compare --config=mini:mnistm --workdir=runs/parts \
    --methods=fm,moda_fm,moda_fm:target_term=fixmatch+mcc:mcc_weight=0.5

All runs have the config's data, length and seed; the method in the config is
replaced, and source_only is always among them. METHOD:key=value[:key=value...]
changes parts and other values of objective, views and optimizer for that run;
python -m moda_jax.main --list shows them. Runs are in RUNS/METHOD, and the same
command resumes what was stopped. RUNS/index.html explains the choice and what
each source is worth; comparison.json has the figures, predictions.csv what the
chosen run says of the target, to_label.csv what to label first.

target_labels=FILE in the config gives labels of some target examples, in the
form of to_label.csv: half of them train every run, and half choose.
"""

import pathlib

from absl import flags
from ml_collections import config_flags

from moda_jax import cli
from moda_jax.errors import UserError

_CONFIG = config_flags.DEFINE_config_file(
  'config', None, 'the config, with its argument after a colon'
)
_WORKDIR = flags.DEFINE_string('workdir', None, 'the folder of all runs')
_METHODS = flags.DEFINE_list(
  'methods',
  ['moda', 'fm', 'moda_fm', 'mdan'],
  'methods beside source_only: METHOD or METHOD:key=value[:key=value...]',
)
_LEAVE_ONE_OUT = flags.DEFINE_bool(
  'leave_one_out', False, 'also train the chosen method without each source'
)


def main() -> None:
  """Trains, chooses and writes the page."""
  if _CONFIG.value is None or _WORKDIR.value is None:
    missing = 'config' if _CONFIG.value is None else 'workdir'
    raise UserError(f'--{missing} must be given; see --help.')
  # The heavy imports wait until the flags are known to be good.
  from moda_jax.report import comparing

  page, choice = comparing.compare(
    _CONFIG.value,
    pathlib.Path(_WORKDIR.value),
    _METHODS.value,
    _LEAVE_ONE_OUT.value,
  )
  print(choice.verdict)
  print(f'comparison: {page}')


if __name__ == '__main__':
  cli.run(main, 'moda_jax.training.config_flags:parse_flags')
