"""SDAT (Rangwani et al. 2022): a flat minimum of the task loss alone.

The task loss is that of the sources' labels, by their weights; of MoE and of
experts that teach each other it contains what these add for each source. Its
gradient is taken at θ + ρ g / ‖g‖, where g is its gradient at θ; the gradient
of all other terms, that of the discriminators above all, at θ itself, as in the
paper. (The authors' program takes both at the perturbed parameters.)
"""

from typing import Any

import jax
import jax.numpy as jnp

from moda_jax.objectives.forward import Forward, Metrics, Params, State
from moda_jax.objectives.method import Method

_LEAST = 1e-12  # of the norm


def value_and_sharp_grad(
  method: Method, rho: float, params: Params, *given: Any
) -> tuple[tuple[jax.Array, tuple[Metrics, State]], Params]:
  """Returns what `jax.value_and_grad` of `loss_and_aux` does, but sharp-aware.

  The weights of the sources are those at θ.

  Args:
    method: has `task_losses`.
    rho: ρ.
    params: θ.
    *given: the further arguments of `loss_and_aux`.
  """

  def task_loss(forward: Forward, weights: jax.Array) -> jax.Array:
    return weights @ method.task_losses(forward)  # type: ignore[misc]

  def losses(params: Params) -> Any:
    forward = Forward(method, params, *given)
    loss, weights = method.loss(forward), forward.task_weights
    task = task_loss(forward, weights)
    return (loss, task), (forward.metrics, forward.state, weights)

  (loss, task), pull, aux = jax.vjp(losses, params, has_aux=True)
  metrics, state, weights = aux
  one, zero = jnp.ones_like(loss), jnp.zeros_like(task)
  (grads,), (at_theta,) = pull((one, zero)), pull((zero, one))
  # Averaged first: the norm is not linear.
  direction = method.across_devices(at_theta)
  squares = sum(jnp.vdot(g, g) for g in jax.tree.leaves(direction))
  scale = rho / jnp.maximum(jnp.sqrt(squares), _LEAST)
  moved = jax.tree.map(lambda p, g: p + scale * g, params, direction)
  sharp = jax.grad(
    lambda params: task_loss(Forward(method, params, *given), weights)
  )(moved)
  grads = jax.tree.map(lambda g, a, b: g - a + b, grads, at_theta, sharp)
  return (loss, (metrics, state)), grads
