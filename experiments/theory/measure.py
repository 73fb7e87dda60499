"""Theorem 1 on the checkpoints of a finished run."""

import functools
import os
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.theory import terms
from moda_jax.data.batches import epoch_steps
from moda_jax.data.domains import Domain, Domains
from moda_jax.data.rows import take_rows
from moda_jax.errors import UserError
from moda_jax.objectives import metrics as names
from moda_jax.objectives.formulas import terms as losses
from moda_jax.training.experiment import Experiment
from moda_jax.training.recorded import read_recorded
from moda_jax.training.run_folder import read_metrics
from moda_jax.training.saved_states import find_steps, load_state
from moda_jax.training.train_step import TrainState, as_float

_BATCH = 64  # of each domain, to train the discriminator
_CHUNK = 500


class Point(NamedTuple):
  """The terms at one checkpoint.

  Attributes:
    step: of the checkpoint.
    epoch: the same in epochs.
    risk: Σ α_j · the share of wrong predictions on source j.
    half_divergence: ½ of the divergence, from a trained discriminator.
    sampling: B_α(δ).
    deviation: V(δ).
    target_risk: on the same target samples; None where labels are not known.
    alpha: the source weights.
  """

  step: int
  epoch: float
  risk: float
  half_divergence: float
  sampling: float
  deviation: float
  target_risk: float | None
  alpha: dict[str, float]


class Bound:
  """Measures the terms for a run.

  Attributes:
    config: of the run.
    samples: n, the target samples used; n/M of each source are.
    dimension: the VC dimension that is assumed.
    delta: δ.
  """

  def __init__(
    self,
    folder: str | os.PathLike,
    samples: int = 0,
    dimension: float = 0,
    delta: float = 0.05,
    training_steps: int = 500,
  ):
    """Reads a run and its data.

    Args:
      folder: of the run.
      samples: n at most; 0 takes as many as there are.
      dimension: d; 0 takes the number of parameters of extractor and
        classifier, which d is at least of the order of.
      delta: δ.
      training_steps: of the discriminator, at each checkpoint.
    """
    if not 0 < delta < 1:
      raise UserError(f'--delta={delta:g} must be above 0 and below 1.')
    recorded = read_recorded(folder)
    self.config = recorded.config
    self.folder, self.delta = folder, delta
    self._steps = training_steps
    experiment = Experiment(self.config, devices=1)
    self._method, domains = experiment.method, experiment.domains
    if self._method.predictors or self.config.run.seeds > 1:
      raise UserError(
        f'{folder}: the bound is that of one classifier; this run has several.'
      )
    self._epoch = epoch_steps(
      domains, self._method.batch_spec, self.config.data.batch_size
    )
    count = len(domains.sources)
    self.samples = find_samples(domains, samples)
    rng = np.random.default_rng(self.config.run.seed)
    each = self.samples // count
    self._sources = [_take(d, each, rng) for d in domains.sources]
    self._target = _take(domains.target, self.samples, rng)
    self.dimension = dimension or _count_parameters(experiment.initial_state)

  def measure(self) -> list[Point]:
    """Returns a point for each checkpoint of the run."""
    return [self._measure(step) for step in find_steps(self.folder)]

  def _measure(self, step: int) -> Point:
    state = load_state(self.folder, step)
    alpha = self._find_alpha(step)
    weights = list(alpha.values())
    risks = [self._risk(state, source) for source in self._sources]
    labels = self._target.labels
    target = None if labels is None else self._risk(state, self._target)
    return Point(
      step,
      step / self._epoch,
      float(np.dot(weights, risks)),
      self._divergence(state, weights) / 2,
      terms.sampling_term(weights, self.samples, self.dimension, self.delta),
      terms.divergence_term(self.samples, self.dimension, self.delta),
      target,
      alpha,
    )

  def _find_alpha(self, step: int) -> dict[str, float]:
    """Returns α as last logged; equal weights for methods without."""
    lines = [m for m in read_metrics(self.folder) if m['step'] <= step]
    logged = names.select(lines[-1], names.ALPHA) if lines else {}
    sources = self.config.data.sources
    return {s: logged.get(s, 1 / len(sources)) for s in sources}

  @functools.cached_property
  def _predict(self) -> Any:
    return jax.jit(
      lambda state, x: self._method.predict(
        state.predicting_params, state.method_state, as_float(x)
      ).argmax(axis=-1)
    )

  def _risk(self, state: TrainState, domain: Domain) -> float:
    wrong = 0
    for start in range(0, domain.size, _CHUNK):
      chosen = slice(start, start + _CHUNK)
      said = self._predict(state, take_rows(domain.inputs, chosen))
      wrong += int(np.sum(np.asarray(said) != domain.known_labels[chosen]))
    return wrong / domain.size

  def _extract(self, state: TrainState, x: Any) -> jax.Array:
    features, _ = self._method.apply(
      'extractor',
      state.predicting_params,
      state.method_state,
      as_float(x),
      train=False,
    )
    return features

  def _divergence(self, state: TrainState, alpha: list[float]) -> float:
    """Trains a discriminator on one half of the samples, asks it on the other.

    It is made as the run's own, and starts afresh on fixed features.
    """
    domains = [*self._sources, self._target]
    rng = np.random.default_rng(0)
    halves = [np.array_split(rng.permutation(d.size), 2) for d in domains]
    network = self._method.networks.discriminator
    first = self._extract(state, take_rows(domains[0].inputs, slice(1)))
    variables = dict(network.init(jax.random.key(0), first))
    params, held = variables.pop('params'), variables
    tx = optax.adam(1e-3)
    opt_state = tx.init(params)
    weights = jnp.asarray(alpha)

    def loss(params: Any, features: jax.Array) -> jax.Array:
      variables = {'params': params, **held}
      logits = network.apply(variables, features, train=False)
      source = losses.domain_losses(logits=logits[:-1], domain=losses.SOURCE)
      target = losses.domain_losses(logits=logits[-1], domain=losses.TARGET)
      return weights @ source + target

    @jax.jit
    def step(params: Any, opt_state: Any, state: Any, x: Any) -> Any:
      grads = jax.grad(loss)(params, self._extract(state, x))
      updates, opt_state = tx.update(grads, opt_state)
      return optax.apply_updates(params, updates), opt_state

    for _ in range(self._steps):
      batch = np.stack(
        [
          take_rows(domain.inputs, np.sort(rng.choice(half[0], _BATCH)))
          for domain, half in zip(domains, halves, strict=True)
        ]
      )
      params, opt_state = step(params, opt_state, state, batch)

    @jax.jit
    def ask(state: Any, x: Any) -> jax.Array:
      features = self._extract(state, x)
      logits = network.apply({'params': params, **held}, features, train=False)
      return logits.argmax(axis=-1) == losses.SOURCE

    said = []
    for domain, half in zip(domains, halves, strict=True):
      parts = np.array_split(np.sort(half[1]), -(-len(half[1]) // _CHUNK))
      answers = [
        np.asarray(ask(state, take_rows(domain.inputs, p))) for p in parts
      ]
      said.append(np.concatenate(answers))
    return terms.divergence(alpha, said[:-1], said[-1])


def find_samples(domains: Domains, most: int = 0) -> int:
  """Returns n, the target samples; a multiple of the number of sources.

  Args:
    domains: what there is.
    most: n at most; 0 takes as many as there are.
  """
  count = len(domains.sources)
  smallest = min(source.size for source in domains.sources)
  there = min(domains.target.size, count * smallest)
  samples = min(most or there, there) // count * count
  if samples < 2 * count:  # each is halved, to train and to ask
    raise UserError(
      f'--samples={most}, of {there}, must give two samples of each source: '
      f'{2 * count} or more are needed.'
    )
  return samples


def _take(domain: Domain, count: int, rng: np.random.Generator) -> Domain:
  return domain.take(np.sort(rng.choice(domain.size, count, replace=False)))


def _count_parameters(state: TrainState) -> int:
  parts = (state.params['extractor'], state.params['classifier'])
  return sum(leaf.size for leaf in jax.tree.leaves(parts))
