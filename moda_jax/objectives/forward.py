"""One training step's pass through the networks, as a method sees it."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from moda_jax.models.networks import Dropout
from moda_jax.objectives import metrics as names
from moda_jax.objectives import terms

Params = dict[str, Any]
State = dict[str, Any]
Batch = dict[str, dict[str, jax.Array]]
Metrics = dict[str, jax.Array]


class Answers(NamedTuple):
  """Logits of the classes in training; M sources, B examples, C classes.

  Attributes:
    source: on each source, where there are several classifiers of its own one,
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
  """

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
    """Features of 'source' `[M, B, …]` and of each target view `[B, …]`."""
    method = self._method
    views = method.batch_spec.target_views
    target = [self.batch['target'][view][None] for view in views]
    x = jnp.concatenate([self.batch['source']['weak'], *target])
    options = {}
    rates = method.networks.dropout_range
    if 'strong' in views and rates:
      options['dropout'] = self._draw_dropout(x.shape[1], rates)
    z = self.apply('extractor', x, **options)  # [M + views, B, …]
    count = len(method.sources)
    by_view = {view: z[count + i] for i, view in enumerate(views)}
    return {'source': z[:count], **by_view}

  def _draw_dropout(self, size: int, rates: tuple[float, float]) -> Dropout:
    """Draws one rate for the step, and a key for every example of a batch."""
    method = self._method
    rate_rng, examples_rng = jax.random.split(self.rng)
    low, high = rates
    rate = jax.random.uniform(rate_rng, minval=low, maxval=high)
    places = jnp.arange(size)
    if method.axis_name is not None:
      places += size * jax.lax.axis_index(method.axis_name)
    keys = jax.vmap(jax.random.fold_in, (None, 0))(examples_rng, places)
    return Dropout(rate, keys)

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
