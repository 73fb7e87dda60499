"""Deep CORAL (Sun & Saenko 2016): second moments of the domains match."""

import jax
import jax.numpy as jnp


def scatter(*, features: jax.Array, mean: jax.Array) -> jax.Array:
  """Returns the mean of (x − mean)(x − mean)ᵀ over examples.

  To be averaged over devices before `covariance_distances`, as is the mean that
  it is given.

  Args:
    features: `[…, B, F]`.
    mean: over the examples of all devices, `[…, F]`.

  Returns:
    `[…, F, F]`.
  """
  centred = features - mean[..., None, :]
  return jnp.einsum('...bi,...bj->...ij', centred, centred) / centred.shape[-2]


def covariance_distances(
  *, source: jax.Array, target: jax.Array, count: int
) -> jax.Array:
  """Returns ‖C_j − C_target‖²_F / (4 F²) of each source, `[M]`.

  C = count / (count − 1) · scatter.

  Args:
    source: the sources' `scatter`, `[M, F, F]`.
    target: the target's, `[F, F]`.
    count: how many examples of a domain these are taken over.
  """
  unbiased = count / max(count - 1, 1)
  difference = unbiased * (source - target)
  features = source.shape[-1]
  return (difference**2).sum(axis=(-2, -1)) / (4 * features**2)
