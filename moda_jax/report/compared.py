"""What a comparison found, gathered for its page and its files."""

import csv
import json
import math
import pathlib
from typing import Any, NamedTuple

import ml_collections
import numpy as np

from moda_jax.data import labelled
from moda_jax.data.domains import Domain
from moda_jax.data.labels import label_shares
from moda_jax.files.atomic import write_whole
from moda_jax.report.candidates import Looked
from moda_jax.report.choice import Choice
from moda_jax.report.worth import Worth
from moda_jax.selection.annotation import most_useful
from moda_jax.training.predictions import write_table

_TO_LABEL = 50


class Compared(NamedTuple):
  """A comparison.

  Attributes:
    config: of all runs, but for the method.
    looked: the finished runs.
    choice: among them.
    worth: of each source.
    weighted: the name of the run whose α these have; '' for none.
    shares: of each class in each source, by its name, `[C]`.
    classes: the estimated shares of the target's; None without an estimate.
    sampled: the target's examples that were judged.
    written: the target's examples that are predicted.
    to_label: which of `sampled` to label first.
    left_out: the chosen method on all sources and without each; None where
      that was not asked for.
  """

  config: ml_collections.ConfigDict
  looked: list[Looked]
  choice: Choice
  worth: list[Worth]
  weighted: str
  shares: dict[str, np.ndarray]
  classes: np.ndarray | None
  sampled: Domain
  written: Domain
  to_label: np.ndarray
  left_out: tuple[list[Looked], Choice] | None = None

  @property
  def chosen(self) -> Looked | None:
    """The run that is chosen, if there is one."""
    found = [run for run in self.looked if run.name == self.choice.name]
    return found[0] if found else None

  @property
  def labels_used(self) -> int:
    """How many labels of the target were used, to train and to choose."""
    path = self.config.data.target_labels
    return len(labelled.read_labels(path)) if path else 0


def find_shares(sources: tuple[Domain, ...]) -> dict[str, np.ndarray]:
  """Returns the share of each class in each source, by its name."""
  return {source.name: label_shares(source) for source in sources}


def find_voting(looked: list[Looked], choice: Choice) -> list[Looked]:
  """Returns the runs that are not refused, or all if all are."""
  return [run for run in looked if run.name not in choice.refused] or looked


def find_to_label(
  looked: list[Looked], choice: Choice, sampled: Domain, path: str
) -> np.ndarray:
  """Returns which examples to label first, the most useful first.

  Candidates that are refused have no vote, unless all are; what is labelled
  already is passed over.

  Args:
    looked: the finished runs.
    choice: among them.
    sampled: the examples that they were judged by.
    path: of the labels that are known; '' for none.
  """
  voting = find_voting(looked, choice)
  known = labelled.find_labelled(sampled, path)
  ordered = most_useful([run.judged for run in voting], sampled.size)
  return ordered[~np.isin(ordered, known)][:_TO_LABEL]


def write_files(compared: Compared, folder: pathlib.Path) -> list[pathlib.Path]:
  """Writes all but the page; returns the paths."""
  paths = [folder / 'comparison.json', folder / 'to_label.csv']
  with write_whole(paths[0]) as file:
    text = json.dumps(summarise(compared), indent=2, ensure_ascii=False)
    file.write(text + '\n')
  with write_whole(paths[1], newline='') as file:
    writer = csv.writer(file)
    writer.writerow(labelled.HEADER)
    names = compared.sampled.names
    writer.writerows([names[place], ''] for place in compared.to_label)
  if compared.chosen is not None:
    paths.append(folder / 'predictions.csv')
    write_table(paths[-1], compared.written, compared.chosen.predicted)
  return paths


def summarise(compared: Compared) -> dict[str, Any]:
  """Returns the comparison as it is written to comparison.json."""
  choice, classes = compared.choice, compared.classes
  summary: dict[str, Any] = {
    'target': compared.config.data.target,
    'steps': compared.config.run.steps,
    'seed': compared.config.run.seed,
    'target_labels_used': compared.labels_used,
    'chosen': choice.name,
    'verdict': choice.verdict,
    'reasons': list(choice.reasons),
    'runs': _describe_runs(compared.looked, choice),
    'sources': [worth._asdict() for worth in compared.worth],
    'weights_of': compared.weighted,
  }
  if classes is not None:
    names = compared.sampled.classes
    summary['estimated_proportions'] = _round(
      dict(zip(names, classes.tolist(), strict=True))
    )
  if compared.left_out is not None:
    runs, left = compared.left_out
    summary['left_out'] = _describe_runs(runs, left)
  return summary


def _describe_runs(looked: list[Looked], choice: Choice) -> dict[str, Any]:
  scores = choice.ranking.scores
  described: dict[str, Any] = {
    run.name: {
      'folder': run.workdir.name,
      'criteria': {
        name: known.get(run.name, run.scores.get(name))
        for name, known in scores.items()
      },
      'oracle_accuracy': run.accuracy,
      'labelled_right': run.labelled[0],
      'labelled': run.labelled[1],
      'refused': choice.refused.get(run.name, ''),
    }
    for run in looked
  }
  for name, why in choice.refused.items():
    described.setdefault(name, {'refused': why})
  return described


def _round(values: dict[str, float]) -> dict[str, float]:
  return {n: v if math.isnan(v) else round(v, 6) for n, v in values.items()}
