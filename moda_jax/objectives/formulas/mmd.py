"""Maximum mean discrepancy with many kernel widths."""

import functools

import jax
import jax.numpy as jnp

# The widths of Guo et al. (2018): 19, from 1e-6 to 1e6.
WIDTHS = (
  *(1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1),
  *(1.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0),
  *(100.0, 1e3, 1e4, 1e5, 1e6),
)


def squared_mmd(
  x: jax.Array, y: jax.Array, *, unbiased: bool = False
) -> jax.Array:
  """Returns the squared MMD of samples `[N, F]` and `[L, F]`.

  The kernel is Σ exp(−‖a − b‖² / 2w) over the widths w.

  Args:
    x: the first sample.
    y: the second.
    unbiased: whether to leave out the pairs of an example with itself. With
      them the value is at least 0 but, in small batches, smallest where all
      features are the same; without them its mean is 0 for equal
      distributions, whatever these are.
  """
  own = _mean_of_pairs if unbiased else _mean_kernel
  value = own(x, x) + own(y, y) - 2 * _mean_kernel(x, y)
  return value if unbiased else jnp.maximum(value, 0)


def mmd_to_target(
  *, source: jax.Array, target: jax.Array, unbiased: bool = False
) -> jax.Array:
  """Returns the squared MMD of each source and the target, `[M]`.

  It is no mean over examples: on several devices the examples of all of them
  are to be gathered first.

  Args:
    source: `[M, B, F]`.
    target: `[B, F]`.
    unbiased: see `squared_mmd`.
  """
  distance = functools.partial(squared_mmd, unbiased=unbiased)
  return jax.vmap(distance, (0, None))(source, target)


def _mean_kernel(x: jax.Array, y: jax.Array) -> jax.Array:
  return _kernels(x, y).mean()


def _mean_of_pairs(x: jax.Array, y: jax.Array) -> jax.Array:
  """Leaves out the diagonal; a single example has no pairs, so that it is 0."""
  count = x.shape[0]
  others = _kernels(x, y) * (1 - jnp.eye(count, dtype=x.dtype))
  return others.sum() / max(count * (count - 1), 1)


def _kernels(x: jax.Array, y: jax.Array) -> jax.Array:
  squares = jnp.sum((x[:, None] - y[None]) ** 2, axis=-1)  # [N, L]
  widths = jnp.array(WIDTHS, squares.dtype)
  return jnp.exp(-squares[..., None] / (2 * widths)).sum(axis=-1)
