"""Trains what a config describes, evaluates it, or predicts with it.

  python -m moda_jax.main --config=configs/digits.py:mnistm --workdir=runs/x

The same command again resumes. Single values are overridden by flags such as
--config.mu_s=0.4.
"""

from absl import flags
from ml_collections import config_flags

from moda_jax import cli

_CONFIG = config_flags.DEFINE_config_file(
  'config', None, 'The config file, with its argument after a colon.'
)
_WORKDIR = flags.DEFINE_string(
  'workdir', None, "The run's folder: checkpoints, metrics, report."
)
_MODE = flags.DEFINE_enum(
  'mode',
  'train',
  ['train', 'evaluate', 'predict'],
  'What to do; predict writes predictions.csv into the workdir.',
)


def main() -> None:
  """Runs the mode."""
  # The heavy imports wait until the flags are known to be good.
  from moda_jax import report
  from moda_jax.training import loop as train
  from moda_jax.training import predictions

  if _MODE.value == 'evaluate':
    train.evaluate(_CONFIG.value, _WORKDIR.value)
    return
  if _MODE.value == 'predict':
    path = predictions.write_predictions(_CONFIG.value, _WORKDIR.value)
    print(f'predictions: {path}')
    return
  outcome = train.train(_CONFIG.value, _WORKDIR.value)
  page = report.write_run_page(outcome, _WORKDIR.value)
  print(f'report: {page}')


if __name__ == '__main__':
  flags.mark_flags_as_required(['config', 'workdir'])
  cli.run(main)
