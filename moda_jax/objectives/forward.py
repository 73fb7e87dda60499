"""One training step's pass through the networks, as a method sees it."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from moda_jax.models.networks import Dropout
from moda_jax.objectives import metrics as names
from moda_jax.objectives.formulas import terms

Params = dict[str, Any]
State = dict[str, Any]
Batch = dict[str, dict[str, jax.Array]]
Metrics = dict[str, jax.Array]


class Answers(NamedTuple):
  """Logits of the classes in training; M sources, B examples, C classes.

  Attributes:
    source: on each source, of its own classifier where there are several,
      `[M, B, C]`.
    target: of the prediction on each view of the target that is classified,
      `[B, C]`.
    experts: where there are several classifiers, each one's on those views,
      `[M, B, C]`, and, of some predictors, on every 'source', `[M, M, B, C]`.
  """

  source: jax.Array
  target: dict[str, jax.Array]
  experts: dict[str, jax.Array] = {}  # noqa: RUF012


class Forward:
  """Runs networks on a batch and collects state and metrics on the way.

  The extractor runs once over all domains and views, and so do the classifiers
  over what they are trained on: `features`, `answers` and `class_losses` are
  computed at their first use. All losses are averaged over the devices, as what
  is nonlinear in them requires.

  Attributes:
    params: the method's parameters.
    state: the method's state, with what networks have changed in it.
    batch: see `moda_jax.data.batches`.
    rng: the key of the step.
    step: the number of the step, from 0.
    metrics: what is logged of the step, by name.
    task_weights: of the sources' own losses in the method's loss, `[M]`, which
      sets them; see `Method.task_losses`.
  """

  task_weights: jax.Array

  def __init__(
    self,
    method: Any,
    params: Params,
    state: State,
    batch: Batch,
    rng: jax.Array,
    step: jax.Array,
  ):
    self.params = params
    self.state = state
    self.batch = batch
    self.step = step
    self.metrics: Metrics = {}
    self._method = method
    self.rng = rng

  def apply(self, part: str, x: jax.Array, **options: Any) -> jax.Array:
    """Applies one network in training; see `Method.apply`."""
    outputs, self.state = self._method.apply(
      part, self.params, self.state, x, train=True, **options
    )
    return outputs

  def log(self, name: str, value: jax.Array) -> None:
    """Adds a value to the metrics; see `metrics` for the names."""
    self.metrics[name] = value

  def log_by_source(self, name: str, values: jax.Array) -> None:
    """Adds the entries of `values` `[M]` to the metrics, named by source."""
    self.metrics |= self._method.by_source(name, values)

  @functools.cached_property
  def features(self) -> dict[str, jax.Array]:
    """Features of 'source' `[M, B, …]` and of each target view `[B, …]`.

    Where the method has a strong view of the sources, 'source_strong' too.
    """
    method, spec = self._method, self._method.batch_spec
    source, target = self.batch['source'], self.batch['target']
    groups = {'source': source['weak']}
    groups |= {view: target[view][None] for view in spec.target_views}
    strong = {name: groups.pop(name) for name in ['strong'] if name in groups}
    if spec.source_strong:
      strong = {'source_strong': source['strong'], **strong}
    groups |= strong  # last, as dropout wants it
    x = jnp.concatenate(list(groups.values()))
    options = {}
    rates = method.networks.dropout_range
    if strong and rates:
      count = sum(len(group) for group in strong.values())
      options['dropout'] = self._draw_dropout(count, x.shape[1], rates)
    z = self.apply('extractor', x, **options)  # [all groups, B, …]
    ends = np.cumsum([len(group) for group in groups.values()])
    parts = dict(zip(groups, jnp.split(z, ends[:-1]), strict=True))
    return {
      name: part if name.startswith('source') else part[0]
      for name, part in parts.items()
    }

  def _draw_dropout(
    self, groups: int, size: int, rates: tuple[float, float]
  ) -> Dropout:
    """Draws one rate for the step, and a key for every example."""
    method = self._method
    rate_rng, examples_rng = jax.random.split(self.rng)
    low, high = rates
    rate = jax.random.uniform(rate_rng, minval=low, maxval=high)
    places = jnp.arange(size)
    if method.axis_name is not None:
      places += size * jax.lax.axis_index(method.axis_name)
    # The last group is the target's, the others are the sources'.
    others = [jax.random.fold_in(rate_rng, i) for i in range(groups - 1)]
    keys = jax.vmap(jax.random.fold_in, (None, 0))
    return Dropout(
      rate, jnp.stack([keys(rng, places) for rng in [*others, examples_rng]])
    )

  @functools.cached_property
  def answers(self) -> Answers:
    """What the method's predictor answers on all that it is trained on."""
    return self._method.predictor.answer(self)

  @functools.cached_property
  def class_losses(self) -> jax.Array:
    """The mean cross-entropy of each source, `[M]`."""
    losses = self._method.across_devices(
      terms.class_losses(
        logits=self.answers.source, labels=self.batch['source']['label']
      )
    )
    self.log_by_source(names.CLASS, losses)
    return losses
