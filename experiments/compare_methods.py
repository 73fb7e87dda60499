"""Methods with several seeds at one config: a table of target accuracies.

  python -m experiments.compare_methods \
    --config=mini:mnistm,steps=1000 --workdir=runs/compare
  python -m experiments.compare_methods --config=reviews:books \
    --targets=books,dvd --methods=fm,moda_fm --workdir=runs/reviews

Each domain in --targets is the target in turn, the others are its sources; by
default the config's own target alone. Writes a table after every run, as .json
and as .md, with the command that made it and, where the paper has the same
experiment, its figures. The same command goes on where it was interrupted:
runs that the table has are not trained again.
"""

import itertools
import json
import pathlib
import shlex
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

import ml_collections
from absl import flags
from ml_collections import config_flags

from experiments.method_tables import Results, Run, format_results
from moda_jax import cli, objectives
from moda_jax.errors import UserError
from moda_jax.files.atomic import write_whole
from moda_jax.training import loop as train
from moda_jax.training.config_files import base_config
from moda_jax.training.recorded import flatten, translate_flat


def compare(
  config: ml_collections.ConfigDict,
  targets: Sequence[str],
  methods: Sequence[str],
  seeds: int,
  folder: pathlib.Path,
  table: pathlib.Path,
) -> Results:
  """Trains what the table lacks, seed by seed: all methods are there early.

  Args:
    config: what the runs have in common.
    targets: the domains that are the target in turn.
    methods: names in `moda_jax.objectives.METHODS`.
    seeds: how many runs each has; the first has seed 0.
    folder: gets a folder for every run.
    table: gets `.json` and `.md`, written after every run.
  """
  _check(methods, objectives.METHODS, '--methods')
  _check(targets, config.data.datasets, '--targets')
  if config.run.seeds > 1 or config.run.seed:
    raise UserError(
      f'config.run.seeds = {config.run.seeds} and config.run.seed = '
      f'{config.run.seed}: here '
      'each run has one seed, the first 0; set the number of runs per method '
      'with --seeds.'
    )
  results = _read(table, config)
  for seed, target, method in itertools.product(range(seeds), targets, methods):
    runs = results.setdefault(target, {}).setdefault(method, {})
    if str(seed) not in runs:
      one = _make_config(config, target, method, seed)
      runs[str(seed)] = _run(one, folder / f'{target}_{method}_{seed}')
      _write(table, config, results)
  _write(table, config, results)  # with the command of today
  return results


def _read(table: pathlib.Path, config: ml_collections.ConfigDict) -> Results:
  """Reads the runs that an earlier call has trained, of the same config."""
  file = table.with_suffix('.json')
  if not file.exists():
    return {}
  try:
    found = json.loads(file.read_text())
    of_config, runs = found['config'], found['runs']
  except (ValueError, KeyError, TypeError) as error:
    raise UserError(
      f'{file} is not a table of this program: remove it or choose another '
      '--table.'
    ) from error
  if not _is_same(of_config, config):
    raise UserError(f'{file} is of another config; choose another --table.')
  return runs


def _is_same(
  described: dict[str, Any], config: ml_collections.ConfigDict
) -> bool:
  """Returns whether a table's config is this; version 0.1 had flat names."""
  now = _describe(config)
  if 'run.log_every' in described:
    return described == now
  special = ('experiment', 'domains', 'search')
  flat = {k: v for k, v in described.items() if k not in special}
  known = flatten(translate_flat(base_config(), flat))
  known |= {k: described[k] for k in special[:2]}
  return all(now.get(name) == value for name, value in known.items())


def _describe(config: ml_collections.ConfigDict) -> dict[str, object]:
  """Returns what all runs of a table have in common."""
  varied = (
    'objective.method',
    'run.seed',
    'run.seeds',
    'data.sources',
    'data.target',
    'data.data_dir',
  )
  values = flatten(json.loads(config.to_json()))
  kept = {k: v for k, v in values.items() if k not in varied}
  return kept | {'domains': sorted(_domains(config))}


def _domains(config: ml_collections.ConfigDict) -> list[str]:
  """Returns sources and target, in the order of the config's data sets."""
  return [
    d
    for d in config.data.datasets
    if d in (*config.data.sources, config.data.target)
  ]


def _check(given: Sequence[str], known: Iterable[str], flag: str) -> None:
  unknown = sorted(set(given) - set(known))
  if unknown or not given:
    named = ', '.join(unknown) or 'nothing'
    raise UserError(f"{flag} names '{named}'; known are {', '.join(known)}.")


def _make_config(
  config: ml_collections.ConfigDict, target: str, method: str, seed: int
) -> ml_collections.ConfigDict:
  config = config.copy_and_resolve_references()
  config.data.sources = tuple(d for d in _domains(config) if d != target)
  config.data.target = target
  config.objective.method, config.run.seed = method, seed
  return config


def _run(config: ml_collections.ConfigDict, path: pathlib.Path) -> Run:
  start = time.monotonic()
  outcome = train.train(config, path)
  if outcome.accuracy is None:
    raise UserError(
      f"The labels of the target '{config.data.target}' are not known: there "
      'is nothing to compare methods by.'
    )
  return {
    'accuracy': outcome.accuracy,
    'seconds': round(time.monotonic() - start, 1),
    'caution': outcome.experiment.method.caution,
  }


def _write(
  table: pathlib.Path, config: ml_collections.ConfigDict, results: Results
) -> None:
  command = f'python -m experiments.compare_methods {shlex.join(sys.argv[1:])}'
  summary = {'command': command, 'config': _describe(config), 'runs': results}
  table.parent.mkdir(parents=True, exist_ok=True)
  with write_whole(table.with_suffix('.json')) as file:
    file.write(json.dumps(summary, indent=1) + '\n')
  parts = [f'`{command}`\n', *format_results(config.experiment, results)]
  with write_whole(table.with_suffix('.md')) as file:
    file.write('\n'.join(parts))


if __name__ == '__main__':
  _CONFIG = config_flags.DEFINE_config_file('config', None, 'The experiment.')
  _METHODS = flags.DEFINE_list(
    'methods', list(objectives.METHODS), 'Which methods to train.'
  )
  _TARGETS = flags.DEFINE_list('targets', [], 'Which domains are the target.')
  _SEEDS = flags.DEFINE_integer('seeds', 3, 'Runs per method.', lower_bound=1)
  _WORKDIR = flags.DEFINE_string('workdir', None, 'The runs.', required=True)
  _TABLE = flags.DEFINE_string(
    'table', None, 'The table without its ending; by default WORKDIR/table.'
  )
  flags.mark_flag_as_required('config')
  cli.run(
    lambda: compare(
      _CONFIG.value,
      _TARGETS.value or [_CONFIG.value.data.target],
      _METHODS.value,
      _SEEDS.value,
      pathlib.Path(_WORKDIR.value),
      pathlib.Path(_TABLE.value or f'{_WORKDIR.value}/table'),
    ),
    'moda_jax.training.config_flags:parse_flags',
  )
