"""What every method has: parameters, a loss, a prediction.

A method is a pure function of its arguments and knows nothing of data sets,
files or the training loop; the loop knows no method by name.
"""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import jax

from moda_jax.config import option
from moda_jax.data.spec import BatchSpec
from moda_jax.models.networks import Networks
from moda_jax.objectives.forward import Batch, Forward, Metrics, Params, State


@dataclasses.dataclass(frozen=True)
class NoOptions:
  """The options of a method that has none."""


@dataclasses.dataclass(frozen=True)
class ConsistencyOptions:
  """Options of methods with FixMatch's consistency.

  Attributes:
    mu_c: the weight of the consistency term.
    tau: target samples more probable than this are trained on.
  """

  mu_c: float = option(0.1, least=0)
  tau: float = option(0.9, least=0, most=1)


@dataclasses.dataclass(frozen=True)
class AdversarialOptions:
  """Options of methods with discriminators.

  Attributes:
    mu_d: the weight of the discriminator's loss.
  """

  mu_d: float = option(1e-2, least=0)


class Confident(NamedTuple):
  """A term's threshold, above which target samples are trained on.

  Attributes:
    metric: what the share of these samples is logged as.
    option: the name of the threshold among the term's options.
    symbol: what a sample is compared with, in formulas.
    title: of the plot of the share.
    note: what the plot shows.
    is_plain: whether it is the classifier's largest probability for the weak
      view that is compared with the threshold, both as they are.
  """

  metric: str
  option: str
  symbol: str
  title: str
  note: str
  is_plain: bool = False


class Method(abc.ABC):
  """A system that learns from labelled sources and an unlabelled target.

  Attributes:
    Options: the dataclass of the values that it reads from the config.
    paper: where it is from, for tables.
    batch_spec: what the batch carries.
    parts: the networks that the method has parameters of.
    depends_on_length: whether its loss depends on `total_steps`.
    confident: the thresholds of its terms on the target.
    observe_sources: None, or `(params, state, batch, first) -> state`, which is
      shown all source examples before the method predicts, `first` being true
      for the first batch; `batch['source']['mask']` marks real examples.
    task_losses: None, or `(forward) -> losses`, those of the sources' labels
      with what the predictor adds for each source, `[M]`, of which the loss
      contains the sum by `forward.task_weights`.
  """

  Options: ClassVar[type] = NoOptions
  paper: ClassVar[str] = ''
  batch_spec: ClassVar[BatchSpec] = BatchSpec()
  parts: ClassVar[tuple[str, ...]] = ('extractor', 'classifier')
  depends_on_length: ClassVar[bool] = False
  confident: ClassVar[tuple[Confident, ...]] = ()
  observe_sources: Callable[..., State] | None = None
  task_losses: Callable[[Forward], jax.Array] | None = None

  @classmethod
  def has_beta(cls) -> bool:
    """Says whether β, which source weights are made of, is a parameter."""
    return False

  def __init__(
    self,
    networks: Networks,
    sources: tuple[str, ...],
    options: Any = None,
    axis_name: str | None = None,
    total_steps: int = 1,
  ):
    """Describes the experiment to the method.

    Args:
      networks: the modules that it applies.
      sources: the names of the source domains, in the batch's order.
      options: an instance of `Options`; its defaults if None.
      axis_name: the mapped axis of devices that the batch is split over.
      total_steps: the length of training, for what changes along it.
    """
    self.networks = networks
    self.sources = sources
    self.options = self.Options() if options is None else options
    self.axis_name = axis_name
    self.total_steps = total_steps

  @property
  def heads(self) -> dict[str, int]:
    """Networks of which there are several side by side, and how many."""
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
  def loss(self, forward: Forward) -> jax.Array:
    """Returns the loss to minimise, of what `forward` gives.

    What is to be logged goes to `forward.metrics`, what the method keeps
    between steps to `forward.state`.
    """

  def loss_and_aux(
    self,
    params: Params,
    state: State,
    batch: Batch,
    rng: jax.Array,
    step: jax.Array,
  ) -> tuple[jax.Array, tuple[Metrics, State]]:
    """Returns the loss of a batch, what to log of it, and the new state."""
    forward = Forward(self, params, state, batch, rng, step)
    loss = self.loss(forward)
    return loss, (forward.metrics, forward.state)

  @property
  def predictors(self) -> tuple[str, ...]:
    """Names of the answers, for a method that gives more than one."""
    return ()

  @property
  def caution(self) -> str:
    """What must be said about a figure that depends on target labels."""
    if self.batch_spec.target_labels:
      return 'trained on target labels: an upper bound'
    if self.predictors:
      return 'best of the single sources, chosen with target labels'
    return ''

  @property
  def curves(self) -> dict[str, str]:
    """Metrics by source that deserve a plot of their own, 0 to 1, by title."""
    return {}

  @property
  def confidence_threshold(self) -> float | None:
    """The probability of the weak view's class above which it is trained on.

    None where no probability by itself decides.
    """
    return None

  def describe_progress(self, metrics: dict[str, float]) -> list[str]:
    """Returns what belongs in the progress line, in the method's own terms."""
    del metrics
    return []

  def find_trouble(self, metrics: dict[str, float]) -> str:
    """Returns a warning that these metrics deserve, or nothing."""
    return ''

  def predict(self, params: Params, state: State, x: jax.Array) -> jax.Array:
    """Returns class probabilities for inputs `[B, …]`.

    Returns:
      `[B, C]`, or `[predictors, B, C]` for a method with `predictors`.
    """
    features = self.extract(params, state, x)
    logits, _ = self.apply('classifier', params, state, features, train=False)
    return jax.nn.softmax(logits)

  def extract(self, params: Params, state: State, x: jax.Array) -> jax.Array:
    """Returns features `[B, …]` of inputs `[B, …]`, as in predictions."""
    features, _ = self.apply('extractor', params, state, x, train=False)
    return features

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

  def across_devices(self, tree: Any) -> Any:
    """Averages over the devices, which a nonlinear loss must do first."""
    if self.axis_name is None:
      return tree
    return jax.lax.pmean(tree, self.axis_name)

  def by_source(self, name: str, values: jax.Array) -> Metrics:
    """Names the entries of `values` `[M]` by their source."""
    return {f'{name}/{s}': values[j] for j, s in enumerate(self.sources)}
