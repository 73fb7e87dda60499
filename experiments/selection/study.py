"""A search as a study of Optuna, in a storage that several workers share.

The values of a draw depend on its number alone: workers need not know of each
other, and an interrupted search makes the draws that it would have made.
"""

import json
import os
import pathlib
import socket
import warnings
from collections.abc import Mapping
from typing import Any

import ml_collections
import numpy as np
import optuna
import sqlalchemy
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, Trial, TrialState

from experiments.runs.records import flat_config
from experiments.selection.ranges import Ranges, draw_value, is_choice
from experiments.selection.trial import run_trial
from moda_jax.errors import NonFiniteError, UserError

_HEARTBEAT = 60  # seconds between two signs of life of a worker
_AGAIN = 'again'  # marks a trial that repeats an interrupted one: its draw
_WORKER = 'worker'  # host and process of a trial under way


class Draws(BaseSampler):
  """Gives the values of a trial by the number of its draw."""

  def __init__(self, ranges: Ranges, seed: int):
    self._ranges = ranges
    self._seed = seed

  def infer_relative_search_space(
    self, study: optuna.Study, trial: FrozenTrial
  ) -> dict[str, BaseDistribution]:
    """Returns nothing: every value is drawn by itself."""
    return {}

  def sample_relative(
    self,
    study: optuna.Study,
    trial: FrozenTrial,
    search_space: dict[str, BaseDistribution],
  ) -> dict[str, Any]:
    """Returns nothing; see above."""
    return {}

  def sample_independent(
    self,
    study: optuna.Study,
    trial: FrozenTrial,
    param_name: str,
    param_distribution: BaseDistribution,
  ) -> Any:
    """Returns the draw's value of one name."""
    draw = find_draw(study, trial)
    limits = self._ranges[param_name]
    return draw_value(limits, self._seed, draw, param_name)


def find_draw(study: optuna.Study, trial: Trial | FrozenTrial) -> int:
  """Returns the number of a trial's draw: repeated trials make none."""
  if _AGAIN in trial.user_attrs:
    return trial.user_attrs[_AGAIN]
  return sum(
    other.number < trial.number and _AGAIN not in other.user_attrs
    for other in study.get_trials(deepcopy=False)
  )


def open_study(
  name: str,
  storage: str,
  config: ml_collections.ConfigDict,
  ranges: Ranges,
  seed: int,
  prune: bool,
) -> optuna.Study:
  """Opens or makes the study; refuses one of another config or ranges."""
  optuna.logging.set_verbosity(optuna.logging.WARNING)
  # The signs of life are an experiment of Optuna's, as it says every time.
  warnings.filterwarnings(
    'ignore', category=optuna.exceptions.ExperimentalWarning
  )
  try:
    opened = optuna.storages.RDBStorage(
      storage,
      heartbeat_interval=_HEARTBEAT,
      grace_period=3 * _HEARTBEAT,
      heartbeat_stale_trial_callback=_queue_again,
    )
  except (ImportError, ValueError, sqlalchemy.exc.SQLAlchemyError) as error:
    raise UserError(f'--storage={storage} cannot be used: {error}.') from error
  study = optuna.create_study(
    storage=opened,
    sampler=Draws(ranges, seed),
    pruner=optuna.pruners.MedianPruner()
    if prune
    else optuna.pruners.NopPruner(),
    study_name=name,
    direction='maximize',
    load_if_exists=True,
  )
  _claim(study, config, ranges, seed)
  return study


def _claim(
  study: optuna.Study,
  config: ml_collections.ConfigDict,
  ranges: Ranges,
  seed: int,
) -> None:
  """Records what is searched, or compares with what is recorded."""
  values = {
    name: value
    for name, value in flat_config(config).items()
    if name not in ('data.data_dir', 'run.compilation_cache')
  }
  wanted = {'config': values, 'ranges': ranges, 'seed': seed}
  text = json.dumps(wanted, sort_keys=True)
  found = study.user_attrs.get('search')
  if found is None:
    study.set_user_attr('search', text)
  elif found != text:
    raise UserError(
      f"The study '{study.study_name}' is of another config, ranges or seed; "
      'choose another --study.'
    )


def work(
  study: optuna.Study,
  config: ml_collections.ConfigDict,
  ranges: Ranges,
  trials: int,
  folder: pathlib.Path,
) -> None:
  """Runs trials until as many draws are done or under way as are wanted.

  A trial that diverges is done and is not chosen. One that is interrupted, or
  whose worker has died, is queued again and resumes in its folder.

  Args:
    study: shared by all workers.
    config: the experiment; its target is not read.
    ranges: what is drawn.
    trials: how many draws are wanted.
    folder: gets a folder for each draw.
  """

  def objective(trial: Trial) -> float:
    draw = find_draw(study, trial)
    if draw >= trials:  # of two workers that took the last draw together
      raise optuna.TrialPruned
    trial.set_user_attr(_WORKER, [socket.gethostname(), os.getpid()])
    values = _suggest(trial, ranges)
    print(f'draw {draw}: {values}', flush=True)
    is_done = False
    try:
      mean = _run(trial, config, values, folder / f'draw_{draw}')
      is_done = True
    except (NonFiniteError, optuna.TrialPruned):
      is_done = True
      raise
    finally:
      if not is_done:  # interrupted, or something was wrong
        _enqueue(study, values, draw)
    return mean

  while True:
    _recover(study)
    states = [trial.state for trial in study.get_trials(deepcopy=False)]
    if TrialState.WAITING not in states and _count(study) >= trials:
      return
    study.optimize(objective, n_trials=1, catch=(NonFiniteError,))


def _suggest(trial: Trial, ranges: Ranges) -> dict[str, float]:
  values: dict[str, Any] = {}
  for name, limits in sorted(ranges.items()):
    if is_choice(limits):
      values[name] = trial.suggest_categorical(name, limits)
    else:
      values[name] = trial.suggest_float(name, *limits, log=True)
  return values


def _run(
  trial: Trial,
  config: ml_collections.ConfigDict,
  values: Mapping[str, float],
  folder: pathlib.Path,
) -> float:
  """Runs a trial; a pruner sees the mean over the sources so far."""
  seen: list[float] = []

  def report(source: str, accuracy: float) -> None:
    seen.append(accuracy)
    trial.set_user_attr(f'accuracy/{source}', accuracy)
    trial.report(float(np.mean(seen)), len(seen))
    if len(seen) < len(config.data.sources) and trial.should_prune():
      raise optuna.TrialPruned

  accuracies = run_trial(config, values, folder, report)
  return float(np.mean(list(accuracies.values())))


def _count(study: optuna.Study) -> int:
  """Returns how many draws were made, without their repeats."""
  trials = study.get_trials(deepcopy=False)
  return sum(_AGAIN not in trial.user_attrs for trial in trials)


def _recover(study: optuna.Study) -> None:
  """Queues again what a dead process of this machine was at."""
  for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
    host, process = trial.user_attrs.get(_WORKER, (None, 0))
    is_here = host == socket.gethostname()
    if not is_here or pathlib.Path(f'/proc/{process}').exists():
      continue
    try:
      study.tell(trial.number, state=TrialState.FAIL)
    except ValueError:  # another worker was faster
      continue
    _queue_again(study, trial)


def _queue_again(study: optuna.Study, trial: FrozenTrial) -> None:
  _enqueue(study, trial.params, find_draw(study, trial))


def _enqueue(
  study: optuna.Study, values: Mapping[str, float], draw: int
) -> None:
  study.enqueue_trial(dict(values), user_attrs={_AGAIN: draw})


def completed(study: optuna.Study) -> list[dict[str, Any]]:
  """Returns the finished trials in the order of their draws."""
  prefix = 'accuracy/'
  done = {}
  for trial in study.get_trials(states=(TrialState.COMPLETE,)):
    done[find_draw(study, trial)] = {
      'values': trial.params,
      'accuracy': {
        name.removeprefix(prefix): value
        for name, value in trial.user_attrs.items()
        if name.startswith(prefix)
      },
      'mean_accuracy': trial.value,
    }
  return [done[draw] for draw in sorted(done)]


def count_running(study: optuna.Study) -> int:
  """Returns how many trials are under way, in whatever process."""
  return len(study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)))
