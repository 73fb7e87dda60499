"""Chooses hyperparameters without the target: leave one source out.

  python -m experiments.leave_one_source_out \
    --config=mini:mnistm --trials=5 --workdir=runs/search
  python -m experiments.leave_one_source_out \
    --config=digits:mnistm,width=0.25 --trials=0 --workdir=runs/own_values

Each trial draws the values of `config.search` log-uniformly and trains once for
every source, that source standing in for the target and the others being the
sources. The trial with the best average accuracy wins. The real target's data
is not read at all. Finished runs are kept: the same command goes on. With
--trials=0 the config's own values are tried, to compare two configs.
"""

import json
import math
import pathlib
import shlex
import sys
from typing import Any

import ml_collections
import numpy as np
from absl import flags
from ml_collections import config_flags

from moda_jax import cli
from moda_jax import config as config_lib
from moda_jax.errors import UserError
from moda_jax.files.atomic import write_whole
from moda_jax.training import loop as train


def draw_values(
  search: ml_collections.ConfigDict, seed: int, trial: int
) -> dict[str, float]:
  """Draws each value log-uniformly from its range, to three digits."""
  rng = np.random.default_rng([seed, trial])
  return {
    name: float(f'{math.exp(rng.uniform(*np.log(search[name]))):.3g}')
    for name in sorted(search)
  }


def _check(config: ml_collections.ConfigDict) -> None:
  if not config.search:
    raise UserError(
      'config.search is empty: there is nothing to draw. --trials=0 tries the '
      "config's own values."
    )
  varied = sorted(
    name.partition('.')[2]
    for name in config_lib.leaves(config)
    if isinstance(_get(config, name), float)
  )
  for name, limits in config.search.items():
    if name not in varied:
      raise UserError(
        f'config.search.{name} is not a value that can be drawn; these can: '
        f'{", ".join(varied)}.'
      )
    if not _is_range(limits):
      raise UserError(
        f'config.search.{name} = {limits!r} must be the two ends of a range '
        'of numbers above 0, such as (0.01, 1.0).'
      )


def _is_range(limits: object) -> bool:
  if not isinstance(limits, tuple | list) or len(limits) != 2:
    return False
  are_numbers = all(isinstance(limit, int | float) for limit in limits)
  return are_numbers and 0 < limits[0] <= limits[1] < math.inf


def held_out_config(
  config: ml_collections.ConfigDict, held_out: str, values: dict[str, float]
) -> ml_collections.ConfigDict:
  """Returns the config with a source in the target's place, at other values."""
  config = config.copy_and_resolve_references()
  config.data.sources = tuple(s for s in config.data.sources if s != held_out)
  config.data.target = held_out
  for name, value in values.items():
    full = config_lib.full_name(config, name)
    if full is None:
      raise UserError(f'{name}: not a value of the config, or several.')
    section, leaf = full.split('.')
    config[section][leaf] = value
  return config


def _get(config: ml_collections.ConfigDict, name: str) -> object:
  section, leaf = name.split('.')
  return config[section][leaf]


def run_trial(
  config: ml_collections.ConfigDict,
  values: dict[str, float],
  folder: pathlib.Path,
) -> dict[str, Any]:
  """Trains with each source held out; returns values and accuracies."""
  accuracies = {
    source: train.train(
      held_out_config(config, source, values), folder / source
    ).accuracy
    for source in config.data.sources
  }
  mean = float(np.mean(list(accuracies.values())))
  return {'values': values, 'accuracy': accuracies, 'mean_accuracy': mean}


def search(
  config: ml_collections.ConfigDict,
  trials: int,
  seed: int,
  folder: pathlib.Path,
) -> dict[str, Any]:
  """Runs the trials and writes `search.json` after each; returns the best.

  Args:
    config: the experiment; its target is not read.
    trials: how many draws; with 0 the config's own values are tried.
    seed: of the draws.
    folder: gets a folder for every trial.
  """
  if trials:
    _check(config)
  done = []
  drawn = [draw_values(config.search, seed, trial) for trial in range(trials)]
  for trial, values in enumerate(drawn or [{}]):
    print(f'trial {trial}: {values}')
    done.append(run_trial(config, values, folder / f'trial_{trial}'))
    best = max(done, key=lambda t: t['mean_accuracy'])
    summary = {
      'command': f'python -m experiments.leave_one_source_out '
      f'{shlex.join(sys.argv[1:])}',
      'experiment': config.experiment,
      'method': config.objective.method,
      'target_never_read': config.data.target,
      'steps': config.run.steps,
      'epochs': config.run.epochs,
      'best': best,
      'trials': done,
    }
    folder.mkdir(parents=True, exist_ok=True)
    with write_whole(folder / 'search.json') as file:
      file.write(json.dumps(summary, indent=2) + '\n')
    print(json.dumps(done[-1]))
  print('best:', json.dumps(best))
  return best


if __name__ == '__main__':
  _CONFIG = config_flags.DEFINE_config_file('config', None, 'The experiment.')
  _TRIALS = flags.DEFINE_integer(
    'trials',
    20,
    "How many draws; 0 tries the config's own values.",
    lower_bound=0,
  )
  _SEED = flags.DEFINE_integer('search_seed', 0, 'Seed of the draws.')
  _WORKDIR = flags.DEFINE_string(
    'workdir', None, 'Runs and search.json.', required=True
  )
  flags.mark_flag_as_required('config')
  cli.run(
    lambda: search(
      _CONFIG.value, _TRIALS.value, _SEED.value, pathlib.Path(_WORKDIR.value)
    ),
    'moda_jax.training.config_flags:parse_flags',
  )
