"""What every method has: parameters, a loss, a prediction.

A method is a pure function of its arguments and knows nothing of data sets,
files or the training loop; the loop knows no method by name.
"""

import abc
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import ml_collections

from moda_jax.models.networks import Dropout, Networks
from moda_jax.objectives import terms
from moda_jax.objectives.reversal import reverse_gradient

Params = dict[str, Any]
State = dict[str, Any]
Batch = dict[str, dict[str, jax.Array]]
Metrics = dict[str, jax.Array]


class TaskTerms(NamedTuple):
  """What the classifier is trained by, averaged over all devices.

  Attributes:
    class_losses: one a source, `[M]`.
    consistency: FixMatch on the target; 0 for a method without a strong view.
    metrics: both by name, and the share of target samples above τ.
  """

  class_losses: jax.Array
  consistency: jax.Array
  metrics: Metrics


class Method(abc.ABC):
  """A system that learns from labelled sources and an unlabelled target.

  Attributes:
    views: the views of the target that the loss reads. A method that declares
      'strong' is trained on shifted and rotated images in 'weak' as well; for
      the others 'weak' is the image as it is. Sources have 'weak' alone.
    reads_sources: whether the batch carries the sources at all.
    reads_target_labels: whether the batch carries `batch['target']['label']`.
    reads_source_sets: whether `add_to_source_sets` is to see all the source
      examples before the method predicts.
    parts: the networks that the method has parameters of.
  """

  views: ClassVar[tuple[str, ...]] = ('weak',)
  reads_sources: ClassVar[bool] = True
  reads_target_labels: ClassVar[bool] = False
  reads_source_sets: ClassVar[bool] = False
  parts: ClassVar[tuple[str, ...]] = ('extractor', 'classifier')

  def __init__(
    self,
    networks: Networks,
    sources: tuple[str, ...],
    config: ml_collections.ConfigDict,
    axis_name: str | None = None,
    total_steps: int = 1,
  ):
    """Describes the experiment to the method.

    Args:
      networks: the modules that it applies.
      sources: the names of the source domains, in the batch's order.
      config: holds the method's values, such as `mu_d` and `tau`.
      axis_name: the mapped axis of devices that the batch is split over.
      total_steps: the length of training, for what changes along it.
    """
    self.networks = networks
    self.sources = sources
    self.config = config
    self.axis_name = axis_name
    self.total_steps = total_steps

  @property
  def heads(self) -> dict[str, int]:
    """Networks that stand several times side by side, and how often."""
    return {}

  def init(self, rng: jax.Array, x: jax.Array) -> tuple[Params, State]:
    """Returns parameters and state for inputs like `x` (`[B, …]`)."""
    params, state, features = {}, {}, None
    for part, key in zip(
      self.parts, jax.random.split(rng, len(self.parts)), strict=True
    ):
      module = getattr(self.networks, part)
      if part == 'extractor':
        features, variables = module.init_with_output(key, x)
      elif part in self.heads:
        keys = jax.random.split(key, self.heads[part])
        variables = jax.vmap(module.init, (0, None))(keys, features)
      else:
        variables = module.init(key, features)
      variables = dict(variables)
      params[part] = variables.pop('params')
      if variables:
        state[part] = variables
    return params, state

  @abc.abstractmethod
  def loss(
    self,
    params: Params,
    state: State,
    batch: Batch,
    rng: jax.Array,
    step: jax.Array,
  ) -> tuple[jax.Array, tuple[Metrics, State]]:
    """Returns the loss to minimise, what to log of it, and the new state."""

  @property
  def predictors(self) -> tuple[str, ...]:
    """Names of the answers, for a method that gives more than one."""
    return ()

  @property
  def caution(self) -> str:
    """What must be said of a figure that target labels have a part in."""
    if self.reads_target_labels:
      return 'trained on target labels: an upper bound'
    if self.predictors:
      return 'best of the single sources, chosen with target labels'
    return ''

  def predict(self, params: Params, state: State, x: jax.Array) -> jax.Array:
    """Returns class probabilities for inputs `[B, …]`.

    Returns:
      `[B, C]`, or `[predictors, B, C]` for a method with `predictors`.
    """
    features, _ = self.apply('extractor', params, state, x, train=False)
    logits, _ = self.apply('classifier', params, state, features, train=False)
    return jax.nn.softmax(logits)

  def reset_source_sets(self, state: State) -> State:
    """Forgets what the state keeps of the sources, before all are shown."""
    return state

  def add_to_source_sets(
    self, params: Params, state: State, batch: Batch
  ) -> State:
    """Takes in source examples; `batch['source']['mask']` tells real ones."""
    return state

  def apply(
    self,
    part: str,
    params: Params,
    state: State,
    x: jax.Array,
    *,
    train: bool,
    **options: Any,
  ) -> tuple[jax.Array, State]:
    """Applies one network; returns its output and the method's new state.

    For a network with several heads the first axis of `x` and of the output
    is that of the heads, each of which sees its own entry alone.
    """
    module = getattr(self.networks, part)
    held = state.get(part, {})

    def run(variables: Params, x: jax.Array) -> tuple[jax.Array, State]:
      return module.apply(
        variables, x, train=train, mutable=list(held), **options
      )

    if part in self.heads:
      run = jax.vmap(run)
    outputs, updated = run({'params': params[part], **held}, x)
    return outputs, {**state, part: updated} if held else state

  def extract(
    self, params: Params, state: State, batch: Batch, rng: jax.Array
  ) -> tuple[dict[str, jax.Array], State]:
    """Runs the extractor once over all domains and views.

    Args:
      params: see `loss`.
      state: see `loss`.
      batch: see `loss`.
      rng: what a network with dropout draws the strong view from.

    Returns:
      The features of 'source' `[M, B, …]` and of each of the target's views
      `[B, …]` under the view's name, and the new state.
    """
    target = [batch['target'][view][None] for view in self.views]
    x = jnp.concatenate([batch['source']['weak'], *target])  # [M + views, B, …]
    options = {}
    if 'strong' in self.views and self.networks.has_dropout:
      options['dropout'] = self._draw_dropout(rng, x.shape[1])
    z, state = self.apply('extractor', params, state, x, train=True, **options)
    count = len(self.sources)
    views = {view: z[count + i] for i, view in enumerate(self.views)}
    return {'source': z[:count], **views}, state

  def _draw_dropout(self, rng: jax.Array, size: int) -> Dropout:
    """Draws one rate for the step, and a key for every example of a batch."""
    rate_rng, examples_rng = jax.random.split(rng)
    config = self.config
    rate = jax.random.uniform(
      rate_rng, minval=config.dropout_min, maxval=config.dropout_max
    )
    places = jnp.arange(size)
    if self.axis_name is not None:
      places += size * jax.lax.axis_index(self.axis_name)
    keys = jax.vmap(jax.random.fold_in, (None, 0))(examples_rng, places)
    return Dropout(rate, keys)

  def task_terms(
    self, params: Params, state: State, z: dict[str, jax.Array], batch: Batch
  ) -> tuple[TaskTerms, State]:
    """Runs the classifier once over what it is trained on."""
    groups = [z['source']]
    if 'strong' in self.views:
      groups += [z['weak'][None], z['strong'][None]]
    logits, state = self.apply(
      'classifier', params, state, jnp.concatenate(groups), train=True
    )
    count = len(self.sources)
    class_losses = self.across_devices(
      terms.class_losses(logits=logits[:count], labels=batch['source']['label'])
    )
    consistency, metrics = jnp.zeros(()), self.by_source('class', class_losses)
    if 'strong' in self.views:
      consistency, kept = self.across_devices(
        terms.consistency(
          weak_logits=logits[count],
          strong_logits=logits[count + 1],
          threshold=self.config.tau,
        )
      )
      metrics |= {'consistency': consistency, 'kept': kept}
    return TaskTerms(class_losses, consistency, metrics), state

  def domain_terms(
    self, params: Params, state: State, z: dict[str, jax.Array]
  ) -> tuple[tuple[jax.Array, jax.Array], Metrics, State]:
    """Runs the discriminator once, its input's gradient reversed.

    Returns:
      The discriminator's losses on each source `[M]` and on the target `[]`,
      both by name, and the new state.
    """
    x = reverse_gradient(jnp.concatenate([z['source'], z['weak'][None]]))
    logits, state = self.apply('discriminator', params, state, x, train=True)
    source, target = self.across_devices(
      (
        terms.domain_losses(logits=logits[:-1], domain=terms.SOURCE),
        terms.domain_losses(logits=logits[-1], domain=terms.TARGET),
      )
    )
    metrics = self.by_source('discriminator', source)
    return (source, target), metrics | {'discriminator/target': target}, state

  def across_devices(self, tree: Any) -> Any:
    """Averages over the devices, which a nonlinear loss must do first."""
    if self.axis_name is None:
      return tree
    return jax.lax.pmean(tree, self.axis_name)

  def by_source(self, name: str, values: jax.Array) -> Metrics:
    """Names the entries of `values` `[M]` by their source."""
    return {f'{name}/{s}': values[j] for j, s in enumerate(self.sources)}
