"""Minimum class confusion (MCC, Jin et al. 2020)."""

import jax
import jax.numpy as jnp

from moda_jax.objectives.formulas.entropies import entropies

_LEAST = 1e-12  # mass of a class below which its row is not scaled up


def class_correlation(*, logits: jax.Array, temperature: float) -> jax.Array:
  """Returns the mean of w_i p_i p_iᵀ, to be averaged over devices.

  p = softmax(logits / temperature) and w_i = 1 + exp(−H(p_i)), through which no
  gradient flows, as in the authors' program. The paper scales the w to a mean
  of 1; `confusion` does not depend on their scale.

  Args:
    logits: of the target, `[B, C]`.
    temperature: T.

  Returns:
    `[C, C]`.
  """
  logits = logits / temperature  # not in place: it may be NumPy's
  p = jax.nn.softmax(logits)
  weights = jax.lax.stop_gradient(1 + jnp.exp(-entropies(logits=logits)))
  return jnp.einsum('b,bi,bj->ij', weights, p, p) / len(p)


def confusion(*, correlation: jax.Array) -> jax.Array:
  """Returns the mean over classes of a row's share off the diagonal, `[]`.

  Args:
    correlation: PᵀWP up to a factor, over the mini-batches of all devices,
      `[C, C]`.
  """
  rows = jnp.maximum(correlation.sum(axis=1, keepdims=True), _LEAST)
  shares = correlation / rows
  return (shares.sum() - jnp.trace(shares)) / len(shares)
