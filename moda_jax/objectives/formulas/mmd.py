"""Maximum mean discrepancy with many kernel widths."""

import jax
import jax.numpy as jnp

# The widths of Guo et al. (2018): 19, from 1e-6 to 1e6.
WIDTHS = (
  *(1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1),
  *(1.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0),
  *(100.0, 1e3, 1e4, 1e5, 1e6),
)


def squared_mmd(x: jax.Array, y: jax.Array) -> jax.Array:
  """Returns the squared MMD of samples `[N, F]` and `[L, F]`, at least 0.

  The kernel is Σ exp(−‖a − b‖² / 2w) over the widths w.
  """
  value = _mean_kernel(x, x) + _mean_kernel(y, y) - 2 * _mean_kernel(x, y)
  return jnp.maximum(value, 0)


def mmd_to_target(*, source: jax.Array, target: jax.Array) -> jax.Array:
  """Returns the squared MMD of each source and the target, `[M]`.

  It is no mean over examples: on several devices the examples of all of them
  are to be gathered first.

  Args:
    source: `[M, B, F]`.
    target: `[B, F]`.
  """
  return jax.vmap(squared_mmd, (0, None))(source, target)


def _mean_kernel(x: jax.Array, y: jax.Array) -> jax.Array:
  squares = jnp.sum((x[:, None] - y[None]) ** 2, axis=-1)  # [N, L]
  widths = jnp.array(WIDTHS, squares.dtype)
  kernels = jnp.exp(-squares[..., None] / (2 * widths))
  return kernels.sum(axis=-1).mean()
