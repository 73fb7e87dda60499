"""Methods with several seeds at one config: a table of target accuracies.

  python -m experiments.compare_methods \
    --config=configs/mini.py:mnistm,steps=1000 --workdir=runs/compare

Each domain in --targets is the target in turn, the others are its sources; the
config's own target alone unless told. Writes `table.json` and `table.md` after
every run, with the command that made them and, where the paper has the same
experiment, its figures. Finished runs are kept: the same command goes on where
it was interrupted.
"""

import json
import pathlib
import shlex
import sys
import time

import ml_collections
import numpy as np
from absl import flags
from ml_collections import config_flags

from experiments.published import published
from moda_jax import cli, objectives, train
from moda_jax.errors import UserError

_CONFIG = config_flags.DEFINE_config_file('config', None, 'The experiment.')
_METHODS = flags.DEFINE_list(
  'methods', list(objectives.METHODS), 'Which methods to train.'
)
_TARGETS = flags.DEFINE_list('targets', [], 'Which domains are the target.')
_SEEDS = flags.DEFINE_integer('seeds', 3, 'Runs a method.', lower_bound=1)
_WORKDIR = flags.DEFINE_string('workdir', None, 'Runs and tables.')

Results = dict[str, dict[str, list[dict[str, object]]]]


def main() -> None:
  """Trains seed by seed, so that a table of all methods is there early."""
  folder, config = pathlib.Path(_WORKDIR.value), _CONFIG.value
  targets = _TARGETS.value or [config.target]
  _check(_METHODS.value, objectives.METHODS, '--methods')
  _check(targets, config.datasets, '--targets')
  if config.seeds > 1:
    raise UserError(
      f'config.seeds = {config.seeds}: here each run has one seed; say with '
      '--seeds how many runs a method has.'
    )
  results: Results = {t: {m: [] for m in _METHODS.value} for t in targets}
  for seed in range(_SEEDS.value):
    for target in targets:
      for method in _METHODS.value:
        one = _make_config(config, target, method, seed)
        path = folder / f'{target}_{method}_{seed}'
        results[target][method].append(_run(one, path))
        _write(folder, config.experiment, results)


def _check(given: list[str], known: dict[str, object], flag: str) -> None:
  unknown = sorted(set(given) - set(known))
  if unknown:
    raise UserError(f'{flag} names {unknown}; known are {", ".join(known)}.')


def _make_config(
  config: ml_collections.ConfigDict, target: str, method: str, seed: int
) -> ml_collections.ConfigDict:
  config = config.copy_and_resolve_references()
  domains = [
    d for d in config.datasets if d in (*config.sources, config.target)
  ]
  config.target = target
  config.sources = tuple(d for d in domains if d != target)
  config.method, config.seed = method, seed
  return config


def _run(
  config: ml_collections.ConfigDict, path: pathlib.Path
) -> dict[str, object]:
  """Trains, or reads what an earlier call has trained."""
  file = path / 'result.json'
  if file.exists():
    return json.loads(file.read_text())
  start = time.monotonic()
  outcome = train.train(config, path)
  result = {
    'accuracy': outcome.accuracy,
    'seconds': round(time.monotonic() - start, 1),
    'caution': outcome.experiment.method.caution,
  }
  file.write_text(json.dumps(result) + '\n')
  return result


def _write(folder: pathlib.Path, experiment: str, results: Results) -> None:
  command = f'python -m experiments.compare_methods {shlex.join(sys.argv[1:])}'
  summary = {
    'command': command,
    'target_accuracy': _collect(results, 'accuracy'),
    'seconds': _collect(results, 'seconds'),
  }
  (folder / 'table.json').write_text(json.dumps(summary, indent=2) + '\n')
  parts = [f'`{command}`\n']
  for target, methods in results.items():
    rows = _rows(experiment, target, methods)
    parts.append('\n'.join([f'Target {target}:\n', *rows]) + '\n')
  (folder / 'table.md').write_text('\n'.join(parts))


def _collect(results: Results, key: str) -> dict[str, dict[str, list[float]]]:
  return {
    target: {m: [run[key] for run in runs] for m, runs in methods.items()}
    for target, methods in results.items()
  }


def _rows(
  experiment: str, target: str, methods: dict[str, list[dict[str, object]]]
) -> list[str]:
  rows = [
    '| method | accuracy (%) | paper (%) | runs | seconds a run | |',
    '|---|---|---|---|---|---|',
  ]
  for method, runs in methods.items():
    if runs:
      values = [100 * run['accuracy'] for run in runs]
      seconds = np.mean([run['seconds'] for run in runs])
      rows.append(
        f'| {method} | {np.mean(values):.1f} ± {_deviation(values):.1f} | '
        f'{published(experiment, method, target)} | {len(runs)} | '
        f'{seconds:.0f} | {runs[-1]["caution"]} |'
      )
  return rows


def _deviation(values: list[float]) -> float:
  """The sample's standard deviation; 0 for a single run."""
  return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


if __name__ == '__main__':
  flags.mark_flags_as_required(['config', 'workdir'])
  cli.run(main)
