"""Finished runs as candidates: what is kept of each to choose by."""

import functools
import os
import pathlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from moda_jax.data.domains import Domain
from moda_jax.data.labelled import take_held
from moda_jax.objectives import metrics as names
from moda_jax.report import examination
from moda_jax.selection.criteria import CRITERIA
from moda_jax.selection.observed import Observed
from moda_jax.training import judging
from moda_jax.training.devices import bring_home
from moda_jax.training.experiment import Experiment
from moda_jax.training.metrics_file import Line, last_values
from moda_jax.training.outcome import Outcome
from moda_jax.training.run_folder import read_metrics
from moda_jax.training.train_step import TrainState

_OF_SOURCE = 500  # of each source


class Looked(NamedTuple):
  """What is known of a finished run once its data is let go.

  Attributes:
    name: of the run.
    workdir: its folder.
    scores: by criterion, at the last step.
    judged: predictions for some of the target's training examples, the same
      ones in every run, `[N, C]`.
    known: predictions for source examples kept out of training, and labels.
    features: of some examples of each domain, by name.
    predicted: for all examples that predictions are written for, `[N, C]`.
    accuracy: on the target's test examples; None where labels are not known.
    labelled: how many of the labelled target examples that were held out are
      right, of how many; (0, 0) where there are none.
    alpha: the source weights; empty for a method without.
  """

  name: str
  workdir: pathlib.Path
  scores: dict[str, float]
  judged: np.ndarray
  known: tuple[np.ndarray, np.ndarray]
  features: dict[str, np.ndarray]
  predicted: np.ndarray
  accuracy: float | None
  labelled: tuple[int, int]
  alpha: dict[str, float]


def look(name: str, outcome: Outcome, workdir: str | os.PathLike) -> Looked:
  """Looks at a finished run through its data."""
  experiment = outcome.experiment
  observed = experiment.evaluator.observe_sources(outcome.state)
  state = bring_home(observed)
  predict = functools.partial(experiment.model.predict_all, state)
  domains = experiment.domains
  sampled = sample(outcome)
  written = find_written(outcome)
  lines = read_metrics(pathlib.Path(workdir))
  lines = [line for line in lines if line['step'] <= int(outcome.state.step)]
  judged = predict(sampled.inputs)
  predicted = predict(written.inputs)
  tested = domains.test
  on_test = predicted if written is tested else predict(tested.inputs)
  extract = examination.make_extractor(experiment, state)
  drawn = [examination.draw_some(s, _OF_SOURCE) for s in domains.sources]
  held = [examination.draw_some(s, _OF_SOURCE) for s in domains.held]
  few = examination.draw_some(domains.target, _OF_SOURCE)
  return Looked(
    name=name,
    workdir=pathlib.Path(workdir),
    scores=_read_scores(lines, judged),
    judged=judged,
    known=(
      np.concatenate([predict(source.inputs) for source in held]),
      np.concatenate([source.known_labels for source in held]),
    ),
    features={d.name: extract(d.inputs) for d in (*drawn, few)},
    predicted=predicted,
    accuracy=_find_accuracy(tested, on_test),
    labelled=_count_right(experiment, state),
    alpha=names.select(last_values(lines), names.ALPHA),
  )


def sample(outcome: Outcome) -> Domain:
  """Returns the target's training examples that criteria judge by."""
  target = outcome.experiment.domains.target
  return target.take(judging.draw(target))


def find_written(outcome: Outcome) -> Domain:
  """Returns the target's examples that predictions are written for.

  They are the test examples, and with these the labelled ones where the target
  is its own test set.
  """
  experiment = outcome.experiment
  is_target = experiment.config.data.evaluate_on == 'target'
  return experiment.domains.target if is_target else experiment.domains.test


def forget_sources(run: Looked) -> Looked:
  """Returns a run without what it scores on source examples.

  Runs with different sources are not compared by these.
  """
  known = {n: s for n, s in run.scores.items() if not CRITERIA[n].needs_held}
  return run._replace(scores=known)


def _read_scores(lines: Sequence[Line], judged: np.ndarray) -> dict[str, float]:
  """Returns what was logged of the last step, or is computed now."""
  logged = lines[-1] if lines else {}
  if judging.EFFECTIVE_CLASSES not in logged:  # of an earlier version
    logged = judging.judge(Observed(judged))
  scores = names.select(logged, judging.PREFIX)
  return {name: scores[name] for name in CRITERIA if name in scores}


def _find_accuracy(domain: Domain, predicted: np.ndarray) -> float | None:
  if domain.labels is None:
    return None
  return float((predicted.argmax(axis=1) == domain.labels).mean())


def _count_right(experiment: Experiment, state: TrainState) -> tuple[int, int]:
  path = experiment.config.data.target_labels
  if not path:
    return 0, 0
  held = take_held(experiment.domains, path)
  found = experiment.model.predict_all(state, held.inputs)
  right = found.argmax(axis=1) == held.known_labels
  return int(right.sum()), len(right)
