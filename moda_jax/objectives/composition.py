"""Methods composed of weights, alignment, target terms and predictor."""

import functools
from typing import Any, ClassVar, NamedTuple, TypeVar

import jax

from moda_jax.data.spec import BatchSpec
from moda_jax.errors import UserError
from moda_jax.objectives.alignment import ALIGNMENTS
from moda_jax.objectives.forward import Forward, Params, State
from moda_jax.objectives.method import Method
from moda_jax.objectives.parts import (
  Alignment,
  Part,
  Predictor,
  TargetTerm,
  Weights,
  merge_options,
)
from moda_jax.objectives.predictors import PREDICTORS
from moda_jax.objectives.target_terms import find_target_terms
from moda_jax.objectives.weights import find_weights

_VIEWS = ('weak', 'strong')
Kind = TypeVar('Kind')


class Parts(NamedTuple):
  """The names of a method's parts."""

  weights: str
  alignment: str
  target_term: str
  predictor: str


class Composition(Method):
  """Source losses by weight + alignment + target terms.

  Attributes:
    names: of its parts.
    kinds: its parts, not yet bound to the method.
    classified_views: the views of the target that are classified in training.
    weights: how the sources' losses become one.
    alignment: how the domains are brought together.
    target_terms: what the target adds.
    predictor: which classifiers there are.
  """

  names: ClassVar[Parts]
  kinds: ClassVar[tuple[type[Part], ...]]
  classified_views: ClassVar[tuple[str, ...]]

  @classmethod
  def has_beta(cls) -> bool:
    """See the base class."""
    return any(getattr(kind, 'has_beta', False) for kind in cls.kinds)

  def __init__(self, *arguments: Any, **named: Any):
    """See the base class."""
    super().__init__(*arguments, **named)
    parts: list[Any] = [kind(self) for kind in self.kinds]
    weights, alignment, predictor, *terms = self._all = parts
    self.weights: Weights = weights
    self.alignment: Alignment = alignment
    self.predictor: Predictor = predictor
    self.target_terms: list[TargetTerm] = terms

  @property
  def heads(self) -> dict[str, int]:
    """See the base class."""
    return self.alignment.heads | self.predictor.heads

  def init(self, rng: jax.Array, x: jax.Array) -> tuple[Params, State]:
    """See the base class."""
    keys = []
    for part in self._all:
      rng, key = jax.random.split(rng) if part.has_key else (rng, rng)
      keys.append(key)
    params, state = super().init(rng, x)
    own = [
      part.init(key, params, state, x)
      for part, key in zip(self._all, keys, strict=True)
    ]
    for own_params, own_state in own:
      params, state = params | own_params, state | own_state
    return params, state

  def shape_of_logits(
    self, params: Params, state: State, x: jax.Array
  ) -> jax.ShapeDtypeStruct:
    """Returns the shape of one classifier's logits for inputs `[B, …]`."""
    answer = self.networks.classifier.init_with_output
    key = jax.random.key(0)
    z = jax.eval_shape(self.extract, params, state, x)
    return jax.eval_shape(answer, key, z)[0]

  def loss(self, forward: Forward) -> jax.Array:
    """See the base class."""
    losses, rest = self.predictor.losses(forward)
    strength, game, distances, shared = self.alignment(forward)
    loss, alpha = self.weights.combine(
      forward, losses + strength * distances, strength * game
    )
    forward.task_weights = jax.lax.stop_gradient(alpha)
    if self.alignment.metric:
      whole = alpha @ (game + distances) + shared
      forward.log(self.alignment.metric, whole)
    loss += strength * shared + rest
    return loss + sum(term(forward) for term in self.target_terms)

  def task_losses(self, forward: Forward) -> jax.Array:
    """See the base class."""
    return self.predictor.losses(forward)[0]

  def predict(self, params: Params, state: State, x: jax.Array) -> jax.Array:
    """See the base class."""
    return self.predictor.predict(params, state, x)

  @property
  def observe_sources(self) -> Any:  # type: ignore[override]
    """See the base class."""
    return self.predictor.observe_sources

  @property
  def curves(self) -> dict[str, str]:
    """See the base class."""
    return self.weights.curves

  @property
  def confidence_threshold(self) -> float | None:
    """See the base class."""
    plain = [
      getattr(self.options, confident.option)
      for confident in self.confident
      if confident.is_plain
    ]
    return plain[0] if plain else None

  def describe_progress(self, metrics: dict[str, float]) -> list[str]:
    """See the base class."""
    parts: list[Any] = [*self.target_terms, self.weights]
    return [text for part in parts for text in part.describe_progress(metrics)]

  def find_trouble(self, metrics: dict[str, float]) -> str:
    """See the base class."""
    return self.weights.find_trouble(metrics)


@functools.cache
def compose(
  weights: str, alignment: str, target_term: str, predictor: str
) -> type[Composition]:
  """Returns the method of these parts; raises `UserError` if there is none."""
  answering = _find(PREDICTORS, 'predictor', predictor)
  terms = find_target_terms(target_term)
  _check_experts(terms, target_term, answering, predictor)
  kinds: tuple[type[Part], ...] = (
    find_weights(weights),
    _find(ALIGNMENTS, 'alignment', alignment),
    answering,
    *terms,
  )
  read = {view for kind in kinds for view in kind.target_views}
  classified = {view for kind in kinds for view in kind.classified_views}
  networks = [name for kind in kinds for name in kind.networks]
  values: dict[str, Any] = {
    '__module__': __name__,
    'names': Parts(weights, alignment, target_term, predictor),
    'kinds': kinds,
    'Options': merge_options(*(kind.Options for kind in kinds)),
    'batch_spec': BatchSpec(
      tuple(v for v in _VIEWS if v in read),
      source_strong=any(kind.source_strong for kind in kinds),
    ),
    'classified_views': tuple(v for v in _VIEWS if v in classified),
    'parts': ('extractor', 'classifier', *networks),
    'confident': tuple(t.confident for t in terms if t.confident is not None),
    'depends_on_length': any(kind.depends_on_length for kind in kinds),
  }
  return type('Composition', (Composition,), values)


def _check_experts(
  terms: tuple[type[TargetTerm], ...],
  target_term: str,
  answering: type[Predictor],
  predictor: str,
) -> None:
  """Refuses a term that needs several classifiers where there is one."""
  if any(term.needs_experts for term in terms) and not answering.has_experts:
    several = [name for name, kind in PREDICTORS.items() if kind.has_experts]
    raise UserError(
      f'config.objective.target_term = {target_term!r} needs one classifier '
      f'per source, and predictor={predictor} is one for all; choose predictor='
      f'{" or ".join(several)}.'
    )


def _find(known: dict[str, Kind], kind: str, name: str) -> Kind:
  if name not in known:
    raise UserError(
      f'config.objective.{kind} = {name!r} is unknown; allowed are '
      f'{", ".join(known)}.'
    )
  return known[name]
