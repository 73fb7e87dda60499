"""Source weights α on the simplex, and what may be done to any of them."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from moda_jax.config import option
from moda_jax.objectives import metrics as names
from moda_jax.objectives.formulas import terms
from moda_jax.objectives.forward import Forward, Params, State
from moda_jax.objectives.parts import Weights
from moda_jax.objectives.reversal import reverse_gradient

_COLLAPSED = 0.98
_STATE = 'source_losses'  # the moving average, in the method's state


@dataclasses.dataclass(frozen=True)
class HoldOptions:
  """Options of all weights that are not equal.

  Attributes:
    alpha_hold: how many steps α is held equal for.
  """

  alpha_hold: int = option(0, least=0)


@dataclasses.dataclass(frozen=True)
class SparsityOptions(HoldOptions):
  """Options of weights with the term μ_s ‖α‖².

  Attributes:
    mu_s: its weight.
  """

  mu_s: float = option(0.2, least=0)


@dataclasses.dataclass(frozen=True)
class FloorOptions:
  """Options of `Floored`.

  Attributes:
    alpha_floor: ε, the share that is given out equally.
  """

  alpha_floor: float = option(0.3, least=0, most=1)


@dataclasses.dataclass(frozen=True)
class AverageOptions:
  """Options of `Averaged`.

  Attributes:
    alpha_decay: what the moving average of the losses keeps at a step.
  """

  alpha_decay: float = option(0.99, least=0, below=1)


class Weighted(Weights):
  """Σ α_j (loss_j − game_j) + μ_s ‖α‖²; the discriminators maximise.

  One backward pass does both: the game's loss is added, and its gradient is
  reversed at the discriminators' input and at the α that multiplies it.

  Attributes:
    remedies: what helps where one source has all the weight; empty for weights
      that are meant to be one-hot.
  """

  Options: ClassVar[type] = SparsityOptions
  remedies: ClassVar[tuple[str, ...]] = ()
  reads_losses: ClassVar[bool] = True  # whether α follows them without β

  def weigh(self, forward: Forward, losses: jax.Array) -> jax.Array:
    """Returns α `[M]` for the sources' losses h `[M]`."""
    raise NotImplementedError

  def sparsity_weight(self, losses: jax.Array) -> jax.Array | float:
    """Returns what ‖α‖² is multiplied by: μ_s."""
    del losses
    return self.options.mu_s

  def alpha(self, forward: Forward, losses: jax.Array) -> jax.Array:
    """Returns `weigh`'s α, equal weights before step `alpha_hold`."""
    alpha = self.weigh(forward, jax.lax.stop_gradient(losses))
    if self.options.alpha_hold:
      equal = jnp.full_like(alpha, 1 / self.count)
      alpha = jnp.where(forward.step < self.options.alpha_hold, equal, alpha)
    forward.log_by_source(names.ALPHA, alpha)
    forward.log(names.EFFECTIVE_SOURCES, 1 / terms.sparsity(alpha=alpha))
    return alpha

  def combine(
    self, forward: Forward, losses: jax.Array, game: jax.Array
  ) -> tuple[jax.Array, jax.Array]:
    """See the base class."""
    alpha = self.alpha(forward, losses - game)
    sparsity = terms.sparsity(alpha=alpha)
    forward.log(names.SPARSITY, sparsity)
    weighted = alpha @ losses + reverse_gradient(alpha) @ game
    return weighted + self.sparsity_weight(losses) * sparsity, alpha

  @property
  def curves(self) -> dict[str, str]:
    """See the base class."""
    return {'source weight α': names.ALPHA}

  def describe_progress(self, metrics: dict[str, float]) -> list[str]:
    """See the base class."""
    alpha = names.select(metrics, names.ALPHA)
    return ['α ' + ' '.join(f'{k} {v:.2f}' for k, v in alpha.items())]

  def find_trouble(self, metrics: dict[str, float]) -> str:
    """Returns a warning if one source has all the weight, else nothing."""
    alpha = names.select(metrics, names.ALPHA)
    has_collapsed = len(alpha) > 1 and max(alpha.values()) > _COLLAPSED
    if not (self.remedies and has_collapsed):
      return ''
    name = max(alpha, key=alpha.__getitem__)
    floor = f'weights={self.method.names.weights}+floored'
    if isinstance(self, Floored):
      floor = 'a larger objective.alpha_floor'
    hold = 'equal weights for the first steps (objective.alpha_hold)'
    return (
      f'The source weights have collapsed: α of {name} is {alpha[name]:.3f}, '
      'and the other sources are hardly learned from. Remedies: '
      f'{", ".join((*self.remedies, hold))}, or {floor}.'
    )


class Floored(Weighted):
  """α' = (1 − ε) α + ε/M: no source is ever dropped."""

  Options: ClassVar[type] = FloorOptions

  def weigh(self, forward: Forward, losses: jax.Array) -> jax.Array:
    """See the base class."""
    floor = self.options.alpha_floor
    return (1 - floor) * super().weigh(forward, losses) + floor / self.count


class Averaged(Weighted):
  """α follows a moving average of the sources' losses."""

  Options: ClassVar[type] = AverageOptions

  def init(
    self, rng: jax.Array, params: Params, state: State, x: jax.Array
  ) -> tuple[Params, State]:
    """See the base class; the average starts at 0: all sources alike."""
    own_params, own_state = super().init(rng, params, state, x)
    return own_params, own_state | {_STATE: jnp.zeros(self.count)}

  def weigh(self, forward: Forward, losses: jax.Array) -> jax.Array:
    """See the base class."""
    decay = self.options.alpha_decay
    average = decay * forward.state[_STATE] + (1 - decay) * losses
    forward.state = forward.state | {_STATE: average}
    return super().weigh(forward, average)
