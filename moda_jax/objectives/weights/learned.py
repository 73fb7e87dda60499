"""Source weights that are learned with the network, as β."""

import jax
import jax.numpy as jnp

from moda_jax.objectives import metrics as names
from moda_jax.objectives.forward import Forward, Params, State
from moda_jax.objectives.weights.weighted import Weighted

_COLLAPSED = 0.98


def warn_of_collapse(metrics: dict[str, float]) -> str:
  """Returns a warning if one source has all the weight, else nothing."""
  alpha = names.select(metrics, names.ALPHA)
  if len(alpha) < 2 or max(alpha.values()) <= _COLLAPSED:
    return ''
  name = max(alpha, key=alpha.__getitem__)
  return (
    f'The source weights have collapsed: α of {name} is {alpha[name]:.3f}, '
    'and the other sources are hardly learned from. Remedies: a smaller rate '
    'for β (optimizer.beta_rate), equal weights for the first steps '
    '(objective.alpha_hold), a larger objective.mu_s, or '
    'method=moda_fm_floored.'
  )


class Softmax(Weighted):
  """α = softmax(β), β a parameter like any other, + μ_s ‖α‖²."""

  paper = 'Pernes & Cardoso'
  has_beta = True
  has_key = True
  reads_losses = False

  def init(
    self, rng: jax.Array, params: Params, state: State, x: jax.Array
  ) -> tuple[Params, State]:
    """Starts β uniform in [0, 1], or equal where α is held equal at first."""
    if self.options.alpha_hold:
      return {'beta': jnp.zeros(self.count)}, {}
    return {'beta': jax.random.uniform(rng, (self.count,))}, {}

  def weigh(self, forward: Forward, losses: jax.Array) -> jax.Array:
    """See the base class."""
    del losses
    return jax.nn.softmax(forward.params['beta'])

  def find_trouble(self, metrics: dict[str, float]) -> str:
    """See the base class."""
    return warn_of_collapse(metrics)


class Relative(Softmax):
  """α = softmax(β), with μ_s in units of the mean loss.

  One-hot weights are then best only where the best source leads by 2 μ_s mean
  losses, however large these still are.
  """

  paper = ''

  def sparsity_weight(self, losses: jax.Array) -> jax.Array:
    """See the base class."""
    return self.options.mu_s * jax.lax.stop_gradient(losses.mean())
