"""DAEL's terms (Zhou et al. 2021): experts that teach one another.

There is one expert per source; M is their number, B the examples of one domain
in a mini-batch, C the number of classes. All terms are means over examples.
"""

import jax
import jax.numpy as jnp

# Added to probabilities in logarithms, as in the authors' program.
_LEAST = 1e-5


def expert_consistency(
  *, weak_logits: jax.Array, strong_logits: jax.Array
) -> jax.Array:
  """Returns L_cr of each source: the other experts towards its own, `[M]`.

  It is the mean of ‖mean_{j≠i} p_j(strong) − p_i(weak)‖² over the examples of
  source i, without gradient through p_i(weak); 0 for a single source.

  Args:
    weak_logits: each expert's on the weak view of its own source, `[M, B, C]`.
    strong_logits: expert j's on the strong view of source i at `[j, i]`,
      `[M, M, B, C]`.
  """
  count = len(weak_logits)
  own = jax.lax.stop_gradient(jax.nn.softmax(weak_logits))
  if count == 1:
    return jnp.zeros(1, own.dtype)
  others = (1 - jnp.eye(count, dtype=own.dtype)) / (count - 1)
  taught = jnp.einsum('ji,jibc->ibc', others, jax.nn.softmax(strong_logits))
  return ((taught - own) ** 2).sum(axis=-1).mean(axis=-1)


def confident_expert(
  *, weak_logits: jax.Array, strong_logits: jax.Array, threshold: float
) -> tuple[jax.Array, jax.Array]:
  """Returns L_u: the mean of all experts towards the most confident one's.

  Of each target example the expert that is surest of the weak view gives the
  class, where it is as sure as `threshold`; −log(mean_j p_j + 1e-5) of that
  class on the strong view is averaged over all examples. No gradient flows
  through the choice.

  Args:
    weak_logits: of all experts, `[M, B, C]`.
    strong_logits: likewise, of the same examples.
    threshold: ε.

  Returns:
    The loss and the share of examples above the threshold, both `[]`.
  """
  weak = jax.lax.stop_gradient(jax.nn.softmax(weak_logits))
  surest = weak.max(axis=-1).argmax(axis=0)  # [B], the expert
  chosen = jnp.take_along_axis(weak, surest[None, :, None], axis=0)[0]
  mean = jax.nn.softmax(strong_logits).mean(axis=0)
  labels = chosen.argmax(axis=-1)
  picked = jnp.take_along_axis(mean, labels[:, None], axis=-1)[:, 0]
  kept = (chosen.max(axis=-1) >= threshold).astype(mean.dtype)
  return -(kept * jnp.log(picked + _LEAST)).mean(), kept.mean()
