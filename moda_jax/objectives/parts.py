"""The four kinds of parts that a composed method has, and what all share.

A part is given the method that it belongs to and reads its own options of the
method's. M is the number of sources, B the examples of one domain in a
mini-batch, C the number of classes.
"""

import abc
import dataclasses
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from moda_jax.objectives.forward import Answers, Forward, Params, State
from moda_jax.objectives.method import Confident, NoOptions

if TYPE_CHECKING:
  from moda_jax.objectives.composition import Composition


@functools.cache
def merge_options(*kinds: type) -> type:
  """Returns a dataclass with the options of all the dataclasses."""
  own = list(dict.fromkeys(k for k in kinds if dataclasses.fields(k)))
  bases = [
    kind
    for kind in own
    if not any(kind is not o and issubclass(o, kind) for o in own)
  ]
  if len(bases) < 2:
    return bases[0] if bases else NoOptions
  return dataclasses.make_dataclass(
    'Options', [], bases=tuple(bases), frozen=True
  )


class Part:
  """A part of a composed method.

  Attributes:
    Options: the dataclass of the values that it reads from the config.
    paper: where it is from, for tables.
    target_views: the views of the target that it reads.
    source_strong: whether it reads a strong view of the sources.
    classified_views: those of which it reads the classifier's answers.
    networks: of those that the experiment has, what it trains.
    has_key: whether a key for random numbers is split off for it at the start.
    depends_on_length: whether its loss depends on the length of training.
  """

  Options: ClassVar[type] = NoOptions
  paper: ClassVar[str] = ''
  target_views: ClassVar[tuple[str, ...]] = ()
  source_strong: ClassVar[bool] = False
  classified_views: ClassVar[tuple[str, ...]] = ()
  networks: ClassVar[tuple[str, ...]] = ()
  has_key: ClassVar[bool] = False
  depends_on_length: ClassVar[bool] = False

  def __init__(self, method: 'Composition'):
    """Belongs to a method, whose options and sources it reads."""
    self.method = method
    self.options: Any = method.options
    self.count = len(method.sources)

  @property
  def heads(self) -> dict[str, int]:
    """Networks of which there are several side by side, and how many."""
    return {}

  def init(
    self, rng: jax.Array, params: Params, state: State, x: jax.Array
  ) -> tuple[Params, State]:
    """Returns parameters and state of its own, beside those of networks.

    Args:
      rng: the part's own key, if it has one.
      params: of the networks.
      state: of the networks.
      x: inputs `[B, …]`.
    """
    del rng, params, state, x
    return {}, {}


class Weights(Part, abc.ABC):
  """How the losses of the sources become one."""

  has_beta: ClassVar[bool] = False

  @abc.abstractmethod
  def combine(
    self, forward: Forward, losses: jax.Array, game: jax.Array
  ) -> tuple[jax.Array, jax.Array]:
    """Returns the loss, and the sources' weights in it `[M]`.

    Args:
      forward: the pass through the networks.
      losses: what everything minimises of each source, `[M]`.
      game: what discriminators minimise of each source and everything else
        maximises, its gradient reversed at their input, `[M]`.
    """

  @property
  def curves(self) -> dict[str, str]:
    """See `Method.curves`."""
    return {}

  def describe_progress(self, metrics: dict[str, float]) -> list[str]:
    """See `Method.describe_progress`."""
    del metrics
    return []

  def find_trouble(self, metrics: dict[str, float]) -> str:
    """See `Method.find_trouble`."""
    del metrics
    return ''


class Aligned(NamedTuple):
  """What an alignment adds to the loss: `strength` times all the rest.

  Attributes:
    strength: its weight, `[]`.
    game: what discriminators minimise of each source and everything else
      maximises, `[M]`.
    distances: what everything minimises of each source, `[M]`.
    shared: what is not of one source, `[]`.
  """

  strength: jax.Array | float
  game: jax.Array
  distances: jax.Array
  shared: jax.Array


class Alignment(Part, abc.ABC):
  """How the domains are brought together."""

  metric: ClassVar[str] = ''  # what its whole is logged as

  @abc.abstractmethod
  def __call__(self, forward: Forward) -> Aligned:
    """Returns what it adds to the loss; logs the rest."""

  def aligned(
    self,
    strength: jax.Array | float,
    game: jax.Array | None = None,
    distances: jax.Array | None = None,
    shared: jax.Array | None = None,
  ) -> Aligned:
    """Returns `Aligned` with zeros in place of what is not given."""
    none = jnp.zeros(self.count)
    return Aligned(
      strength,
      none if game is None else game,
      none if distances is None else distances,
      jnp.zeros(()) if shared is None else shared,
    )


class TargetTerm(Part, abc.ABC):
  """What the unlabelled target adds to the loss.

  Attributes:
    needs_experts: whether it reads the answers of several classifiers.
    shown: which of the metrics that it logs belong in the progress line.
    confident: its threshold, where it has one.
  """

  needs_experts: ClassVar[bool] = False
  shown: ClassVar[tuple[str, ...]] = ()
  confident: ClassVar[Confident | None] = None

  @abc.abstractmethod
  def __call__(self, forward: Forward) -> jax.Array:
    """Returns the term, weighted, `[]`; logs what it is made of."""

  def describe_progress(self, metrics: dict[str, float]) -> list[str]:
    """See `Method.describe_progress`."""
    said = [
      f'{name.replace("_", " ")} {metrics[name]:.3f}'
      for name in self.shown
      if name in metrics
    ]
    if self.confident is not None and self.confident.metric in metrics:
      share = 100 * metrics[self.confident.metric]
      said.append(f'above {self.confident.symbol} {share:.0f} %')
    return said


class Predictor(Part, abc.ABC):
  """Which classifiers there are, what they learn, and what they predict.

  Attributes:
    has_experts: whether there is one classifier per source.
    observe_sources: see `Method`.
  """

  has_experts: ClassVar[bool] = False
  observe_sources: Callable[..., State] | None = None

  @abc.abstractmethod
  def answer(self, forward: Forward) -> Answers:
    """Returns the answers in training, on sources and classified views."""

  def losses(self, forward: Forward) -> tuple[jax.Array, jax.Array]:
    """Returns the loss of each source `[M]`, and what is of none `[]`."""
    return forward.class_losses, jnp.zeros(())

  @abc.abstractmethod
  def predict(self, params: Params, state: State, x: jax.Array) -> jax.Array:
    """Returns class probabilities `[B, C]` for inputs `[B, …]`."""
