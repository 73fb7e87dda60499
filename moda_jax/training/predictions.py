"""What a trained run says of the target's examples, as a table."""

import csv
import os
import pathlib
from collections.abc import Iterator

import ml_collections
import numpy as np

from moda_jax.data.domains import Domains
from moda_jax.files.atomic import write_whole
from moda_jax.training import loop as train
from moda_jax.training.evaluation import dense
from moda_jax.training.experiment import Experiment
from moda_jax.training.step import TrainState

_HEADER = ('example', 'class', 'probability')


def write_predictions(
  config: ml_collections.ConfigDict,
  workdir: str | os.PathLike,
  data: Domains | None = None,
) -> pathlib.Path:
  """Writes `predictions.csv` from the last checkpoint; returns its path.

  One line an example of the target: its file, or its place where it has no
  name, the most probable class, and how probable. A method that gives several
  predictions is read by their mean, and so are several seeds; where these have
  test examples of their own, those of the first seed are predicted.
  """
  experiment, state = train.restore(config, workdir, data)
  test = experiment.domains.test
  names = test.examples or range(test.size)
  path = pathlib.Path(workdir) / 'predictions.csv'
  with write_whole(path, newline='') as file:
    writer = csv.writer(file)
    writer.writerow(_HEADER)
    rows = zip(names, predict_all(experiment, state), strict=True)
    for name, probabilities in rows:
      best = int(np.argmax(probabilities))
      writer.writerow([name, test.classes[best], f'{probabilities[best]:.4f}'])
  return path


def predict_all(
  experiment: Experiment, state: TrainState
) -> Iterator[np.ndarray]:
  """Yields the class probabilities `[C]` of each of the target's examples."""
  test, size = experiment.domains.test, experiment.config.eval_batch_size
  state = experiment.evaluator.prepare(state)
  for start in range(0, test.size, size):
    inputs = dense(test.inputs[start : start + size])
    probabilities = np.asarray(experiment.predict(state, inputs, prepared=True))
    if experiment.method.predictors:
      probabilities = probabilities.mean(axis=0)
    yield from probabilities
