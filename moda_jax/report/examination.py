"""A trained run looked at through its data: predictions and features."""

import functools
from typing import Any, NamedTuple

import jax
import numpy as np

from moda_jax.data.domains import Domain
from moda_jax.data.rows import take_rows
from moda_jax.models.networks import pooled
from moda_jax.training import several_seeds
from moda_jax.training.experiment import Experiment
from moda_jax.training.train_step import TrainState, as_float

_PREDICTED = 2000  # of the target
_OF_SOURCE = 500  # of each source
_MAPPED = 150  # of each domain
_FLAT = 8192  # features; larger ones are averaged over space


class Predicted(NamedTuple):
  """Examples of a domain and what the run says about them.

  Attributes:
    domain: with these examples alone.
    probabilities: `[N, C]`.
    whole: of how many examples they were drawn.
  """

  domain: Domain
  probabilities: np.ndarray
  whole: int

  @property
  def classes(self) -> np.ndarray:
    """The most probable class of each, `[N]`."""
    return self.probabilities.argmax(axis=1)

  @property
  def confidences(self) -> np.ndarray:
    """How probable that class is, `[N]`."""
    return self.probabilities.max(axis=1)

  @property
  def accuracy(self) -> float | None:
    """The share of right answers; None where labels are not known."""
    if self.domain.labels is None:
      return None
    return float((self.classes == self.domain.labels).mean())


class Examination(NamedTuple):
  """What a run does on its data.

  Attributes:
    test: the target's examples that are evaluated on.
    target: those that were trained on, without their labels.
    sources: the sources' training examples.
    features: of some examples of each domain, `[N, F]`, by name.
    mapped: those examples.
  """

  test: Predicted
  target: Predicted
  sources: tuple[Predicted, ...]
  features: dict[str, np.ndarray]
  mapped: dict[str, Domain]


def examine(experiment: Experiment, state: TrainState) -> Examination:
  """Predicts and extracts features; at most some thousand examples."""
  domains = experiment.domains
  predict = functools.partial(_predict, experiment, state)
  test = predict(domains.test, _PREDICTED)
  target = test
  if domains.test is not domains.target:
    target = predict(domains.target, _PREDICTED)
  mapped = {
    domain.name: draw_some(domain, _MAPPED)
    for domain in (*domains.sources, domains.target)
  }
  extract = make_extractor(experiment, state)
  return Examination(
    test=test,
    target=target,
    sources=tuple(predict(source, _OF_SOURCE) for source in domains.sources),
    features={name: extract(d.inputs) for name, d in mapped.items()},
    mapped=mapped,
  )


def _predict(
  experiment: Experiment, state: TrainState, domain: Domain, most: int
) -> Predicted:
  drawn = draw_some(domain, most)
  probabilities = experiment.model.predict_all(state, drawn.inputs)
  return Predicted(drawn, probabilities, domain.size)


def draw_some(domain: Domain, most: int) -> Domain:
  """Returns at most so many examples, the same ones every time."""
  if domain.size <= most:
    return domain
  rng = np.random.default_rng(0)
  return domain.take(np.sort(rng.permutation(domain.size)[:most]))


def make_extractor(experiment: Experiment, state: TrainState) -> Any:
  """Returns a function from inputs to features `[N, F]`; the first seed's."""
  if experiment.config.run.seeds > 1:
    state = several_seeds.take_seed(state, 0)
  params, method_state = state.predicting_params, state.method_state

  @jax.jit
  def extract(x: jax.Array) -> jax.Array:
    z = experiment.method.extract(params, method_state, as_float(x))
    flat = z.reshape(len(z), -1)
    return flat if flat.shape[1] <= _FLAT else pooled(z)

  def extract_all(inputs: Any) -> np.ndarray:
    size = min(experiment.config.run.eval_batch_size, inputs.shape[0])
    starts = range(0, inputs.shape[0], size)
    parts = [
      np.asarray(extract(take_rows(inputs, slice(i, i + size)))) for i in starts
    ]
    return np.concatenate(parts)

  return extract_all
