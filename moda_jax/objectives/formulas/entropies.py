"""Entropies of predictions: how sure and how varied they are.

Entropy minimisation (Grandvalet & Bengio 2005) minimises the mean entropy of
the predictions for the target, information maximisation (Krause et al. 2010;
SHOT, Liang et al. 2020) the same less the entropy of their mean.
"""

import jax
import jax.numpy as jnp


def entropies(*, logits: jax.Array) -> jax.Array:
  """Returns −Σ p log p, p = softmax(logits), of logits `[…, C]`."""
  return -(jax.nn.softmax(logits) * jax.nn.log_softmax(logits)).sum(axis=-1)


def entropy_of(*, probabilities: jax.Array) -> jax.Array:
  """Returns −Σ p log p of `[…, C]`, with a finite gradient where p is 0.

  A mean of predictions is to be averaged over devices before.
  """
  p = probabilities
  return -(p * jnp.log(jnp.maximum(p, jnp.finfo(p.dtype).tiny))).sum(axis=-1)
