r"""Chooses values without the target, as the paper does: leave one source out.

  python -m experiments.search --config=mini:mnistm --trials=5 \
    --workdir=runs/search
  python -m moda_jax.main --config=mini:mnistm,values=runs/search/values.json \
    --workdir=runs/chosen

Each trial draws the values that config.search names, μ log-uniformly and the
length from its choices, and trains once for every source, that source in the
place of the target and the others being the sources. The best mean accuracy
wins and lands in WORKDIR/values.json. The real target is not read. The same
command goes on where it was interrupted. --trials=0 tries the config's own
values, to compare two configs, and writes WORKDIR/own_values.json.

Trials are kept by Optuna: --storage=URL has workers on several machines share
them, and `optuna-dashboard URL` (pip install optuna-dashboard) shows them. By
default it is sqlite:///WORKDIR/search.db.
"""

import json
import pathlib
import shlex
import sys
import threading
from collections.abc import Sequence
from typing import Any

import ml_collections
import numpy as np
from absl import flags
from ml_collections import config_flags

from moda_jax import cli
from moda_jax.errors import UserError
from moda_jax.files.atomic import write_whole


def try_own_values(
  config: ml_collections.ConfigDict, folder: pathlib.Path
) -> dict[str, Any]:
  """Runs a trial at the config's own values, for `own_values.json`."""
  from experiments.selection.trial import run_trial

  accuracies = run_trial(config, {}, folder / 'own_values')
  mean = float(np.mean(list(accuracies.values())))
  trial = {'values': {}, 'accuracy': accuracies, 'mean_accuracy': mean}
  return _write(config, {}, [trial], folder / 'own_values.json')


def search(
  config: ml_collections.ConfigDict,
  trials: int,
  folder: pathlib.Path,
  *,
  seed: int = 0,
  vary: Sequence[str] = (),
  storage: str = '',
  name: str = '',
  prune: bool = False,
  jobs: int = 1,
) -> dict[str, Any]:
  """Works at a search until its trials are done; writes and returns the best.

  Args:
    config: the experiment; its target is not read.
    trials: how many draws.
    folder: gets a folder for every draw, and `values.json`.
    seed: of the draws.
    vary: the names of the values to vary; all of `config.search` by default.
    storage: the URL of Optuna's storage; by default a file in `folder`.
    name: of the study; by default experiment, target and method.
    prune: whether trials below the median of the others are given up.
    jobs: how many workers; several are processes with this one's flags.
  """
  from experiments.selection import ranges, study

  varied = ranges.find_ranges(config, vary)
  folder.mkdir(parents=True, exist_ok=True)
  storage = storage or f'sqlite:///{folder.absolute()}/search.db'
  target, method = config.data.target, config.objective.method
  name = name or f'{config.experiment}, {target}, {method}'
  opened = study.open_study(name, storage, config, varied, seed, prune)
  if jobs > 1:
    search_in_processes(jobs, folder)
  study.work(opened, config, varied, trials, folder)
  done, running = study.completed(opened), study.count_running(opened)
  if running:
    print(
      f'Trials still under way in other processes: {running}. The same command '
      'again includes them.'
    )
  return _write(config, varied, done, folder / 'values.json')


def _write(
  config: ml_collections.ConfigDict,
  varied: dict[str, tuple],
  done: list[dict[str, Any]],
  path: pathlib.Path,
) -> dict[str, Any]:
  """Writes a file whose `values` any config takes; returns the best trial."""
  if not done:
    raise UserError('No trial is finished: there is nothing to choose from.')
  from moda_jax.training.meaning import describe_meaning

  best = max(done, key=lambda trial: trial['mean_accuracy'])
  summary = {
    'command': f'python -m experiments.search {shlex.join(sys.argv[1:])}',
    'experiment': config.experiment,
    'method': config.objective.method,
    'target_never_read': config.data.target,
    'steps': config.run.steps,
    'epochs': config.run.epochs,
    'ranges': varied,
    'meaning': describe_meaning(config),
    **best,
    'trials': done,
  }
  path.parent.mkdir(parents=True, exist_ok=True)
  with write_whole(path) as file:
    file.write(json.dumps(summary, indent=1) + '\n')
  print(f'best of {len(done)}: {json.dumps(best)}\n{path}')
  return best


def search_in_processes(jobs: int, folder: pathlib.Path) -> None:
  """Starts workers with the flags of this process, and waits for their end."""
  from experiments.runs import runner
  from experiments.runs.failures import Failures

  failures = Failures()

  def work(number: int, slot: runner.Slot) -> None:
    name, log = f'worker {number}', folder / f'worker_{number}.log'
    command = ['experiments.search', *sys.argv[1:], '--jobs=1']  # the last wins
    with failures.collect(name, log):
      runner.run_process(command, log, slot, name)

  print(f'{jobs} workers; see {folder}/worker_*.log', flush=True)
  workers = [
    threading.Thread(target=work, args=pair)
    for pair in enumerate(runner.find_slots(jobs))
  ]
  for worker in workers:
    worker.start()
  runner.wait_for(workers, failures)


def main() -> None:
  """Searches with one worker here, or with several in processes."""
  config, folder = _CONFIG.value, pathlib.Path(_WORKDIR.value)
  if not _TRIALS.value:
    try_own_values(config, folder)
    return
  from experiments.runs.runner import find_slots

  search(
    config,
    _TRIALS.value,
    folder,
    seed=_SEED.value,
    vary=_VARY.value,
    storage=_STORAGE.value,
    name=_STUDY.value,
    prune=_PRUNE.value,
    jobs=min(len(find_slots(_JOBS.value)), _TRIALS.value),
  )


if __name__ == '__main__':
  _CONFIG = config_flags.DEFINE_config_file('config', None, 'the experiment')
  _TRIALS = flags.DEFINE_integer(
    'trials', 20, "how many draws; 0: the config's own values", lower_bound=0
  )
  _WORKDIR = flags.DEFINE_string(
    'workdir', None, 'runs and values.json', required=True
  )
  _SEED = flags.DEFINE_integer('search_seed', 0, 'seed of the draws')
  _VARY = flags.DEFINE_list(
    'vary', [], 'names of values to vary; all of config.search by default'
  )
  _STORAGE = flags.DEFINE_string('storage', '', "the URL of Optuna's storage")
  _STUDY = flags.DEFINE_string('study', '', "the study's name in the storage")
  _PRUNE = flags.DEFINE_bool(
    'prune', False, 'give up trials below the median of the others'
  )
  _JOBS = flags.DEFINE_integer(
    'jobs', 0, 'workers; 0: one per device or CPU core', lower_bound=0
  )
  flags.mark_flag_as_required('config')
  cli.run(main, 'moda_jax.training.config_flags:parse_flags')
