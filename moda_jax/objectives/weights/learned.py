"""Source weights that are learned with the network, as β."""

import jax
import jax.numpy as jnp

from moda_jax.objectives.forward import Forward, Params, State
from moda_jax.objectives.weights.weighted import Weighted


class Softmax(Weighted):
  """α = softmax(β), β a parameter like any other, + μ_s ‖α‖²."""

  paper = 'Pernes & Cardoso'
  has_beta = True
  has_key = True
  reads_losses = False
  remedies = (
    'a smaller rate for β (optimizer.beta_rate)',
    'a larger objective.mu_s',
  )

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


class Relative(Softmax):
  """α = softmax(β), with μ_s in units of the mean loss.

  One-hot weights are then best only where the best source leads by 2 μ_s mean
  losses, however large these still are.
  """

  paper = ''

  def sparsity_weight(self, losses: jax.Array) -> jax.Array:
    """See the base class."""
    return self.options.mu_s * jax.lax.stop_gradient(losses.mean())
