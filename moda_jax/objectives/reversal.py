"""Gradient reversal: the identity forward, a negative multiple backward."""

from typing import Any

import jax
import jax.numpy as jnp


@jax.custom_vjp
def reverse_gradient(tree: Any, strength: jax.typing.ArrayLike = 1.0) -> Any:
  """Returns `tree` as it is, and reverses the gradient that flows back.

  What comes before the reversal ascends on a loss that what comes after it
  descends on, so one backward pass serves both players of a min-max game.

  Args:
    tree: any pytree of floating-point arrays.
    strength: the gradient is multiplied by `-strength`; may be traced. No
      gradient flows to it.
  """
  _check_floating(tree)
  del strength
  return tree


def _check_floating(tree: Any) -> None:
  for leaf in jax.tree.leaves(tree):
    if not jnp.issubdtype(jnp.result_type(leaf), jnp.floating):
      raise TypeError(
        'reverse_gradient takes floating-point arrays only, got a leaf of '
        f'dtype {jnp.result_type(leaf)}.'
      )


def _forward(tree: Any, strength: jax.Array) -> tuple[Any, jax.Array]:
  _check_floating(tree)
  return tree, jnp.asarray(strength)


def _backward(strength: jax.Array, cotangent: Any) -> tuple[Any, jax.Array]:
  # In each leaf's own dtype: a float32 strength must not widen bfloat16.
  reversed_ = jax.tree.map(lambda g: -strength.astype(g.dtype) * g, cotangent)
  return reversed_, jnp.zeros_like(strength)


reverse_gradient.defvjp(_forward, _backward)
