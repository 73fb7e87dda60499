"""The outcome of a run: its accuracies, and what to say about them."""

import logging
import os
from typing import NamedTuple

from moda_jax.training.evaluation import ACCURACY, DEVIATION, seed_accuracy
from moda_jax.training.experiment import Experiment
from moda_jax.training.progress import format_accuracy
from moda_jax.training.run_folder import read_metrics
from moda_jax.training.train_step import TrainState

_log = logging.getLogger(__name__)


class Outcome(NamedTuple):
  """A finished run.

  Attributes:
    experiment: what was trained.
    state: after the last step, or at the evaluation that `run.selection` has
      chosen.
    accuracy: of this state on the target's test examples; for a method
      with several predictions the best of them, chosen with target labels.
      None where the labels of the target are not known.
      Of several seeds it is their mean.
    by_predictor: each prediction's accuracy, for such a method.
    best_accuracy: the best over time: chosen with target labels, so not an
      estimate of what the method reaches without them.
    by_seed: each seed's accuracy, where there are several.
    deviation: the standard deviation of these; None for a single seed.
  """

  experiment: Experiment
  state: TrainState
  accuracy: float | None
  by_predictor: dict[str, float]
  best_accuracy: float | None
  by_seed: dict[int, float]
  deviation: float | None


def summarise(
  experiment: Experiment, state: TrainState, workdir: str | os.PathLike
) -> Outcome:
  """Returns the outcome of a run from the metrics in its folder.

  Where they lack those of the state's step, it is evaluated again.
  """
  step = int(state.step)
  lines = [m for m in read_metrics(workdir) if ACCURACY in m]
  evaluations = [m for m in lines if m['step'] <= step]
  if not evaluations or evaluations[-1]['step'] != step:
    again = evaluate_again(experiment, state)
    evaluations += [again] if again else []
  last = evaluations[-1] if evaluations else {}
  return Outcome(
    experiment=experiment,
    state=state,
    accuracy=last.get(ACCURACY),
    by_predictor=_select_predictors(experiment, last),
    best_accuracy=max(
      (m[ACCURACY] for m in [*lines, *evaluations]), default=None
    ),
    by_seed=_select_seeds(experiment, last),
    deviation=last.get(DEVIATION),
  )


def evaluate_again(
  experiment: Experiment, state: TrainState
) -> dict[str, float]:
  """Returns accuracies by name; none where labels are not known."""
  if experiment.domains.test.labels is None:
    return {}
  state = experiment.evaluator.observe_sources(state)
  return experiment.evaluator.accuracies(state)


def log_outcome(outcome: Outcome) -> None:
  """Logs the accuracy of a finished run, and what it is made of."""
  _log_parts(outcome.experiment, outcome.by_predictor, outcome.by_seed)
  if outcome.accuracy is None or outcome.best_accuracy is None:
    _log.info('no accuracy: the labels of the target are not known')
    return
  criterion = outcome.experiment.config.run.selection
  step = int(outcome.state.step)
  _log.info(
    'target accuracy %s at %s (best over time, chosen with target labels: '
    '%.2f %%)',
    format_accuracy(outcome.accuracy, outcome.deviation),
    f'step {step}, chosen by {criterion}' if criterion else 'the last step',
    100 * outcome.best_accuracy,
  )


def log_accuracies(
  experiment: Experiment, accuracies: dict[str, float], step: int
) -> None:
  """Logs the accuracies of one evaluation, after `step`."""
  _log_parts(
    experiment,
    _select_predictors(experiment, accuracies),
    _select_seeds(experiment, accuracies),
  )
  _log.info(
    'target accuracy %s at step %d',
    format_accuracy(accuracies[ACCURACY], accuracies.get(DEVIATION)),
    step,
  )


def _select_seeds(
  experiment: Experiment, metrics: dict[str, float]
) -> dict[int, float]:
  seeds = experiment.model.seeds
  named = {seed: metrics.get(seed_accuracy(seed)) for seed in seeds}
  return {seed: value for seed, value in named.items() if value is not None}


def _select_predictors(
  experiment: Experiment, metrics: dict[str, float]
) -> dict[str, float]:
  names = experiment.method.predictors if metrics else ()
  return {name: metrics[f'{ACCURACY}/{name}'] for name in names}


def _log_parts(
  experiment: Experiment,
  by_predictor: dict[str, float],
  by_seed: dict[int, float],
) -> None:
  """Logs what an accuracy is made of, and what must be said about it."""
  for name, accuracy in by_predictor.items():
    _log.info('target accuracy from %s alone %.2f %%', name, 100 * accuracy)
  for seed, accuracy in by_seed.items():
    _log.info('target accuracy of seed %d %.2f %%', seed, 100 * accuracy)
  if experiment.method.caution:
    _log.warning('mind: %s', experiment.method.caution)
