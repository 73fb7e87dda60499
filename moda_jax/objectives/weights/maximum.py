"""The largest of the sources' losses, or nearly (MDAN, Zhao et al. 2018).

Here h_j = loss_j + game_j: the source that is worst in either leads. Where the
weights are held, floored or averaged, the loss is Σ α_j h_j with the weights
that the maximum's gradient has.
"""

import dataclasses

import jax

from moda_jax.config import option
from moda_jax.objectives.forward import Forward
from moda_jax.objectives.weights.weighted import (
  Averaged,
  Floored,
  HoldOptions,
  Weighted,
)


@dataclasses.dataclass(frozen=True)
class SmoothMaxOptions(HoldOptions):
  """Options of `SmoothMax`.

  Attributes:
    gamma: how sharp the smooth maximum is.
  """

  gamma: float = option(10.0, above=0)


class HardMax(Weighted):
  """max_j (loss_j + game_j)."""

  Options = HoldOptions
  paper = 'Zhao et al. 2018'

  def weigh(self, forward: Forward, losses: jax.Array) -> jax.Array:
    """See the base class."""
    del forward
    return jax.nn.one_hot(losses.argmax(), self.count, dtype=losses.dtype)

  def maximum(self, losses: jax.Array) -> jax.Array:
    """Returns the largest of the sources' losses `[M]`."""
    return losses.max()

  def combine(
    self, forward: Forward, losses: jax.Array, game: jax.Array
  ) -> tuple[jax.Array, jax.Array]:
    """See the base class."""
    together = losses + game
    if self._has_alpha:
      alpha = self.alpha(forward, together)
      return alpha @ together, alpha
    alpha = self.weigh(forward, jax.lax.stop_gradient(together))
    return self.maximum(together), alpha

  @property
  def _has_alpha(self) -> bool:
    is_changed = isinstance(self, Averaged | Floored)
    return is_changed or self.options.alpha_hold > 0

  @property
  def curves(self) -> dict[str, str]:
    """See the base class."""
    return super().curves if self._has_alpha else {}

  def describe_progress(self, metrics: dict[str, float]) -> list[str]:
    """See the base class."""
    return super().describe_progress(metrics) if self._has_alpha else []


class SmoothMax(HardMax):
  """(1/γ) log Σ_j exp(γ (loss_j + game_j))."""

  Options = SmoothMaxOptions

  def weigh(self, forward: Forward, losses: jax.Array) -> jax.Array:
    """See the base class."""
    del forward
    return jax.nn.softmax(self.options.gamma * losses)

  def maximum(self, losses: jax.Array) -> jax.Array:
    """Returns the smooth maximum of the sources' losses `[M]`."""
    gamma = self.options.gamma
    return jax.nn.logsumexp(gamma * losses) / gamma
