r"""Trains what a config describes, evaluates it, or predicts with it.

  python -m moda_jax.main --config=digits:mnistm --workdir=runs/m
  python -m moda_jax.main --config=digits:svhn,method=moda,mu_s=0.4 \
    --workdir=runs/svhn

The same command again resumes. A config is a name (see --list) or a file; after
the colon come its target and key=value pairs; values=FILE takes those that
experiments.search has chosen. Full names are set by flags, such as
--config.objective.mu_s=0.4. --from=RUN goes on from another run's last state.
Ctrl-C saves and leaves with status 130, SIGTERM with 143. Several processes
train one run if each gets this command, with a workdir that all see, and
--distributed or --coordinator, --processes and --process.
"""

import ml_collections
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
_DISTRIBUTED = flags.DEFINE_bool(
  'distributed', False, 'join the processes of a TPU pod, SLURM or Open MPI'
)
_COORDINATOR = flags.DEFINE_string(
  'coordinator', None, 'HOST:PORT of the first of several processes'
)
_PROCESSES = flags.DEFINE_integer('processes', None, 'how many there are')
_PROCESS = flags.DEFINE_integer('process', None, 'which one this is, from 0')


def main() -> None:
  """Runs the mode, in one process or as one of several."""
  if _LIST.value:
    from moda_jax import listing

    print(listing.describe_choices())
    return
  config, workdir = _CONFIG.value, _WORKDIR.value
  if config is None or workdir is None:
    missing = 'config' if config is None else 'workdir'
    raise UserError(f'--{missing} must be given; see --help.')
  where = (_COORDINATOR.value, _PROCESSES.value, _PROCESS.value)
  if not _DISTRIBUTED.value and where == (None, None, None):
    _run(config, workdir)
    return
  # The heavy imports wait until the flags are known to be good.
  from moda_jax.training.processes import Joined

  with Joined(*where):
    cli.end_by_message(lambda: _run(config, workdir))


def _run(config: ml_collections.ConfigDict, workdir: str) -> None:
  from moda_jax import report
  from moda_jax.training import loop, predictions, processes, reopened

  if _MODE.value == 'evaluate':
    reopened.evaluate(config, workdir)
    return
  if _MODE.value == 'predict':
    path = predictions.write_predictions(config, workdir)
    if processes.is_first():
      print(f'predictions: {path}')
    return
  writer = report.PageWriter()
  outcome = loop.train(config, workdir, on_log=writer, start_from=_FROM.value)
  if processes.is_first():
    page = report.write_run_page(outcome, workdir)
    print(f'report: {page}')


if __name__ == '__main__':
  cli.run(main, 'moda_jax.training.config_flags:parse_flags')
