"""Finished runs as candidates among which to choose without target labels."""

import json
import logging
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from moda_jax.data.domains import Domains
from moda_jax.data.load import open_domains, prepare_target
from moda_jax.errors import UserError
from moda_jax.models.features import FeaturesOptions
from moda_jax.selection.criteria import CRITERIA
from moda_jax.selection.observed import Observed
from moda_jax.selection.ranking import Candidate
from moda_jax.training import judging
from moda_jax.training.embedding import embed_domains
from moda_jax.training.experiment import make_embedding
from moda_jax.training.metrics_file import Line
from moda_jax.training.trained import Trained, load_trained

_log = logging.getLogger(__name__)
# What the data of a run may differ in without the whole target differing.
_DRAWS = (
  'batch_size',
  'evaluate_on',
  'features',
  'holdout',
  'memory',
  'samples',
  'target_labels',
)


class RunCandidate(NamedTuple):
  """A run and what is known of it without labels of the target.

  Attributes:
    trained: the run.
    candidate: its scores and predictions.
    evaluations: the lines of metrics that have criteria.
    oracle: its target accuracy, which is known where labels are; it serves
      comparison alone.
  """

  trained: Trained
  candidate: Candidate
  evaluations: list[Line]
  oracle: float | None


def open_candidates(
  workdirs: Sequence[str | os.PathLike],
) -> list[RunCandidate]:
  """Returns the runs in folders as candidates, with their predictions.

  All predict the same examples of the target, at most 2,000 that are drawn of
  all that it has. Criteria that read no source examples are computed from
  these predictions; the others are those that were logged. Where the data is
  not there any more, all are.

  Raises:
    UserError: a folder does not hold a run, or they have different targets or
      classes.
  """
  trained = [load_trained(workdir) for workdir in workdirs]
  _check_alike(trained)
  opened: dict[str, Domains] = {}
  return [make_candidate(run, opened) for run in trained]


def _check_alike(trained: Sequence[Trained]) -> None:
  first = trained[0]
  for run in trained[1:]:
    for what, of in (('target', _describe_target), ('classes', _find_classes)):
      if of(run) != of(first):
        raise UserError(
          'Runs can be ranked only for one target and one list of classes. '
          f'{first.workdir} has the {what} {of(first)}, {run.workdir} '
          f'{of(run)}.'
        )


def _describe_target(run: Trained) -> str:
  data = run.model.config.data
  return f"'{data.target}' ({data.datasets[data.target]})"


def _find_classes(run: Trained) -> str:
  return ', '.join(run.model.inputs.classes)


def make_candidate(run: Trained, opened: dict[str, Domains]) -> RunCandidate:
  """Returns a run as a candidate, see `open_candidates`.

  Args:
    run: the run.
    opened: data that was opened before, to which this run's is added.
  """
  step = int(run.state.step)
  lines = [
    line for line in run.read_lines() if judging.EFFECTIVE_CLASSES in line
  ]
  logged = next((line for line in lines if line['step'] == step), {})
  probabilities = _try_to_predict(run, opened)
  found = dict(logged)
  if probabilities is not None:
    found |= judging.judge(Observed(probabilities))
  candidate = Candidate(
    str(run.workdir),
    {
      name: found[judging.metric(name)]
      for name in CRITERIA
      if judging.metric(name) in found
    },
    probabilities,
    found.get(judging.EFFECTIVE_CLASSES),
    len(run.model.inputs.classes),
  )
  return RunCandidate(run, candidate, lines, run.accuracy)


def _try_to_predict(
  run: Trained, opened: dict[str, Domains]
) -> np.ndarray | None:
  try:
    return predict_target(run, opened)
  except UserError as error:
    _log.warning(
      '%s: ranked by what was logged alone, because its data is not there: %s',
      run.workdir,
      error,
    )
    return None


def predict_target(run: Trained, opened: dict[str, Domains]) -> np.ndarray:
  """Returns a run's probabilities `[N, C]` for examples of its target.

  They are the same for runs of the same target, whatever these have drawn.

  Args:
    run: whose data can be read.
    opened: data that was opened before, to which this run's is added.
  """
  config, settings = run.model.config, run.model.settings
  if 'memory' in config.data.datasets.values():
    raise UserError('it was trained on arrays in memory, which are not kept.')
  data: dict[str, Any] = json.loads(config.data.to_json())
  embeds = isinstance(settings.network, FeaturesOptions)
  key = json.dumps([{k: v for k, v in data.items() if k not in _DRAWS}, embeds])
  if key not in opened:
    opened[key] = open_domains(config)
  whole = opened[key]
  target = whole.target
  if embeds:
    embedding = make_embedding(settings, run.read_backbone())
    target = embed_domains(Domains((), target, target), embedding).target
  examples = target.take(judging.draw(target))
  inputs = prepare_target(config, whole, examples).inputs
  return run.model.predict_all(run.state, inputs)
