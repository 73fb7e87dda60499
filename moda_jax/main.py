r"""Trains what a config describes, evaluates it, or predicts with it.

  python -m moda_jax.main --config=digits:mnistm --workdir=runs/m
  python -m moda_jax.main --config=digits:svhn,method=moda,mu_s=0.4 \
    --workdir=runs/svhn

The same command again resumes. A config is a name (see --list) or a file; after
the colon come its target and key=value pairs; values=FILE takes those that
experiments.search has chosen. Any value can be set by a flag with its full name
too, such as --config.objective.mu_s=0.4. --from=RUN goes on from another run's
last checkpoint with other values. Ctrl-C saves and leaves with status 130,
SIGTERM with 143.
"""

from absl import flags
from ml_collections import config_flags

from moda_jax import cli
from moda_jax.errors import UserError

_CONFIG = config_flags.DEFINE_config_file(
  'config', None, 'the config, with its argument after a colon'
)
_WORKDIR = flags.DEFINE_string(
  'workdir', None, "the run's folder: checkpoints, metrics, report"
)
_MODE = flags.DEFINE_enum(
  'mode',
  'train',
  ['train', 'evaluate', 'predict'],
  'what to do; predict writes predictions.csv into the workdir',
)
_FROM = flags.DEFINE_string(
  'from', None, "another run's folder: a new run starts with its last state"
)
_LIST = flags.DEFINE_bool(
  'list', False, 'list configs, methods, networks and optimizers'
)


def main() -> None:
  """Runs the mode."""
  if _LIST.value:
    from moda_jax import listing

    print(listing.describe_choices())
    return
  config, workdir = _CONFIG.value, _WORKDIR.value
  if config is None or workdir is None:
    missing = 'config' if config is None else 'workdir'
    raise UserError(f'--{missing} must be given; see --help.')
  # The heavy imports wait until the flags are known to be good.
  from moda_jax import report
  from moda_jax.training import loop, predictions

  if _MODE.value == 'evaluate':
    loop.evaluate(config, workdir)
    return
  if _MODE.value == 'predict':
    path = predictions.write_predictions(config, workdir)
    print(f'predictions: {path}')
    return
  writer = report.PageWriter()
  outcome = loop.train(config, workdir, on_log=writer, start_from=_FROM.value)
  page = report.write_run_page(outcome, workdir)
  print(f'report: {page}')


if __name__ == '__main__':
  cli.run(main, 'moda_jax.training.config_flags:parse_flags')
