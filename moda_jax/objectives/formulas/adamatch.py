"""AdaMatch's terms on the target (Berthelot et al. 2022).

Its interpolation of two passes' logits and its strong views of the sources are
left out.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp


class BatchMeans(NamedTuple):
  """What AdaMatch compares the domains by, to be averaged over devices.

  Attributes:
    source: the mean of the predictions for all sources, `[C]`.
    target: that for the target's weak view, `[C]`.
    confidence: the mean of the largest probability over all sources, `[]`.
  """

  source: jax.Array
  target: jax.Array
  confidence: jax.Array


def batch_means(
  *, source_logits: jax.Array, weak_logits: jax.Array
) -> BatchMeans:
  """Returns the means of logits `[M, B, C]` and `[B, C]`, without gradient."""
  source = jax.lax.stop_gradient(jax.nn.softmax(source_logits))
  target = jax.lax.stop_gradient(jax.nn.softmax(weak_logits))
  return BatchMeans(
    source.mean(axis=(0, 1)), target.mean(axis=0), source.max(axis=-1).mean()
  )


def aligned_consistency(
  *,
  weak_logits: jax.Array,
  strong_logits: jax.Array,
  means: BatchMeans,
  threshold: float,
) -> tuple[jax.Array, jax.Array]:
  """Returns the mean of 1[max q ≥ τ c] · H(q, p_strong).

  q ∝ p · E[p_source] / E[p_target] is the prediction for the weak view, aligned
  with the classes of the sources, and c the mean confidence on these. No
  gradient flows through q or c.

  Args:
    weak_logits: `[B, C]`.
    strong_logits: `[B, C]`, of the same samples.
    means: over the mini-batches of all devices.
    threshold: τ, relative to c.

  Returns:
    The loss and the share of samples above the threshold, both `[]`.
  """
  p = jax.lax.stop_gradient(jax.nn.softmax(weak_logits))
  # A class that is never predicted has p = 0 in every sample.
  tiny = jnp.finfo(p.dtype).tiny
  q = p * (means.source / jnp.maximum(means.target, tiny))
  q /= jnp.maximum(q.sum(axis=-1, keepdims=True), tiny)
  kept = q.max(axis=-1) >= threshold * means.confidence
  losses = -(q * jax.nn.log_softmax(strong_logits)).sum(axis=-1)
  kept = kept.astype(losses.dtype)
  return (kept * losses).mean(), kept.mean()


def ramp(progress: jax.Array) -> jax.Array:
  """Returns μ(t) = ½ − ½ cos(min(π, 2πt/T)) at the progress t/T."""
  return 0.5 - 0.5 * jnp.cos(jnp.minimum(jnp.pi, 2 * jnp.pi * progress))
