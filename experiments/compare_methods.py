"""Every method with several seeds at one config: a table of accuracies.

  python -m experiments.compare_methods \
    --config=configs/mini.py:mnistm,steps=1000 --workdir=runs/compare

Writes `table.json` and `table.md` after every run, with the command that made
them. Finished runs are kept: the same command goes on where it was interrupted.
"""

import json
import pathlib
import shlex
import sys

import numpy as np
from absl import flags
from ml_collections import config_flags

from moda_jax import cli, objectives, train
from moda_jax.errors import UserError

_CONFIG = config_flags.DEFINE_config_file('config', None, 'The experiment.')
_METHODS = flags.DEFINE_list(
  'methods', list(objectives.METHODS), 'Which methods to train.'
)
_SEEDS = flags.DEFINE_integer('seeds', 3, 'Runs a method.', lower_bound=1)
_WORKDIR = flags.DEFINE_string('workdir', None, 'Runs and tables.')


def main() -> None:
  """Trains seed by seed, so that a table of all methods is there early."""
  folder = pathlib.Path(_WORKDIR.value)
  unknown = set(_METHODS.value) - set(objectives.METHODS)
  if unknown:
    raise UserError(
      f'--methods names {sorted(unknown)}; known are '
      f'{", ".join(objectives.METHODS)}.'
    )
  if _CONFIG.value.seeds > 1:
    raise UserError(
      f'config.seeds = {_CONFIG.value.seeds}: here each run has one seed; say '
      'with --seeds how many runs a method has.'
    )
  accuracies = {method: [] for method in _METHODS.value}
  cautions = {}
  for seed in range(_SEEDS.value):
    for method in _METHODS.value:
      config = _CONFIG.value.copy_and_resolve_references()
      config.method, config.seed = method, seed
      outcome = train.train(config, folder / f'{method}_{seed}')
      accuracies[method].append(outcome.accuracy)
      cautions[method] = outcome.experiment.method.caution
      _write(folder, accuracies, cautions)


def _write(
  folder: pathlib.Path,
  accuracies: dict[str, list[float]],
  cautions: dict[str, str],
) -> None:
  done = {method: values for method, values in accuracies.items() if values}
  command = f'python -m experiments.compare_methods {shlex.join(sys.argv[1:])}'
  table = {'command': command, 'target_accuracy': done}
  (folder / 'table.json').write_text(json.dumps(table, indent=2) + '\n')
  rows = [f'`{command}`\n']
  rows += ['| method | accuracy (%) | runs | |', '|---|---|---|---|']
  for method, values in done.items():
    mean, deviation = 100 * np.mean(values), 100 * _deviation(values)
    rows.append(
      f'| {method} | {mean:.1f} ± {deviation:.1f} | {len(values)} | '
      f'{cautions[method]} |'
    )
  (folder / 'table.md').write_text('\n'.join(rows) + '\n')


def _deviation(values: list[float]) -> float:
  """The sample's standard deviation; 0 for a single run."""
  return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


if __name__ == '__main__':
  flags.mark_flags_as_required(['config', 'workdir'])
  cli.run(main)
