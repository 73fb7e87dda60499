"""Class means of the sources, and a learned distance from points to them.

M sources, K classes, F features, R the rank of the metric; points come in
groups `[G, B, F]`.
"""

import jax
import jax.numpy as jnp

from moda_jax.objectives.formulas import terms

_FAR = 1e9  # the distance to a class that was never seen
Sets = dict[str, jax.Array]  # 'mean' [M, K, F] and 'count' [M, K]


def empty_sets(sources: int, classes: int, features: int) -> Sets:
  """Returns sets that have seen nothing."""
  return {
    'mean': jnp.zeros((sources, classes, features)),
    'count': jnp.zeros((sources, classes)),
  }


def class_sums(
  *, encodings: jax.Array, labels: jax.Array, mask: jax.Array, classes: int
) -> tuple[jax.Array, jax.Array]:
  """Returns the sums of encodings `[M, B, F]` by class, and their counts.

  The sums are `[M, K, F]`, the counts `[M, K]`.

  No gradient flows to the encodings; examples outside `mask` do not count.
  """
  member = (labels[..., None] == jnp.arange(classes)) & mask[..., None]
  member = member.astype(encodings.dtype)  # [M, B, K]
  encodings = jax.lax.stop_gradient(encodings)
  return jnp.einsum('mbk,mbf->mkf', member, encodings), member.sum(axis=1)


def replace(sets: Sets, sums: jax.Array, counts: jax.Array) -> Sets:
  """Returns the new sums' means; the old ones for classes that they lack."""
  seen = counts > 0
  mean = sums / jnp.maximum(counts, 1)[..., None]
  return {
    'mean': jnp.where(seen[..., None], mean, sets['mean']),
    'count': jnp.where(seen, counts, sets['count']),
  }


def extend(sets: Sets, sums: jax.Array, counts: jax.Array) -> Sets:
  """Returns means over what the sets have seen and the new sums together."""
  total = sets['count'] + counts
  before = sets['mean'] * sets['count'][..., None]
  mean = (before + sums) / jnp.maximum(total, 1)[..., None]
  return {'mean': mean, 'count': total}


def confidence(
  *, metric: jax.Array, sets: Sets, encodings: jax.Array
) -> jax.Array:
  """Returns how clearly each source tells the classes apart at each point.

  It is the second smallest minus the smallest of the distances ‖Uᵀ(x − mean)‖
  to a source's classes; 0 for a source with fewer than two to tell apart.

  Args:
    metric: `[M, K, F, R]`, one U for each class of each source.
    sets: the class means.
    encodings: `[G, B, F]`.

  Returns:
    `[M, G, B]`.
  """
  points = jnp.einsum('gbf,mkfr->mgbkr', encodings, metric)
  means = jnp.einsum('mkf,mkfr->mkr', sets['mean'], metric)
  distances = terms.safe_norm(points - means[:, None, None])  # [M, G, B, K]
  seen = (sets['count'] > 0)[:, None, None]
  nearest, _ = jax.lax.top_k(-jnp.where(seen, distances, _FAR), 2)
  several = seen.sum(axis=-1) > 1  # [M, 1, 1]
  return jnp.where(several, nearest[..., 0] - nearest[..., 1], 0)
