"""The predictions of a run for the target's examples, as a table."""

import csv
import os
import pathlib

import ml_collections
import numpy as np

from moda_jax.data.domains import Domain, Domains
from moda_jax.files.atomic import write_whole
from moda_jax.training import devices, processes, reopened

_HEADER = ('example', 'class', 'probability')


def write_predictions(
  config: ml_collections.ConfigDict,
  workdir: str | os.PathLike,
  data: Domains | None = None,
) -> pathlib.Path:
  """Writes `predictions.csv` from the last checkpoint; returns its path.

  A method that gives several predictions is read by their mean, and so are
  several seeds; where these have test examples of their own, those of the first
  seed are predicted.
  """
  experiment, state = reopened.restore(config, workdir, data)
  test = experiment.domains.test
  state = devices.bring_home(experiment.evaluator.observe_sources(state))
  path = pathlib.Path(workdir) / 'predictions.csv'
  if processes.is_first():
    write_table(path, test, experiment.model.predict_all(state, test.inputs))
  return path


def write_table(
  path: pathlib.Path, domain: Domain, predicted: np.ndarray
) -> None:
  """Writes predictions as a table, whole or not at all.

  One line per example: its file, or its place in the domain where it has none,
  the most probable class, and how probable.

  Args:
    path: of the table.
    domain: the examples.
    predicted: their probabilities, `[N, C]`.
  """
  with write_whole(path, newline='') as file:
    writer = csv.writer(file)
    writer.writerow(_HEADER)
    for name, probabilities in zip(domain.names, predicted, strict=True):
      best = int(np.argmax(probabilities))
      writer.writerow(
        [name, domain.classes[best], f'{probabilities[best]:.4f}']
      )
