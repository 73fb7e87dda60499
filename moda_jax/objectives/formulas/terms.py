"""The terms that the methods' losses are made of.

Pure functions of arrays. M is the number of sources, B the examples of one
domain in a mini-batch, C the number of classes.
"""

import jax
import jax.numpy as jnp
import optax

SOURCE, TARGET = 0, 1  # the discriminator's two classes


def class_losses(*, logits: jax.Array, labels: jax.Array) -> jax.Array:
  """Returns the mean cross-entropy of each domain.

  Args:
    logits: `[M, B, C]`.
    labels: `[M, B]`, integers in `[0, C)`.

  Returns:
    `[M]`.
  """
  losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
  return losses.mean(axis=-1)


def domain_losses(*, logits: jax.Array, domain: int) -> jax.Array:
  """Returns the mean of −log p(d = domain | x) over each mini-batch.

  Args:
    logits: `[..., B, 2]`, the discriminator's output.
    domain: `SOURCE` or `TARGET`.

  Returns:
    `[...]`.
  """
  return -jax.nn.log_softmax(logits)[..., domain].mean(axis=-1)


def consistency(
  *, weak_logits: jax.Array, strong_logits: jax.Array, threshold: float
) -> tuple[jax.Array, jax.Array]:
  """Returns FixMatch's loss: strong views towards the weak views' classes.

  Only samples whose weak view is classified with a probability above
  `threshold` count, but the mean is over all. No gradient flows through the
  pseudo-labels or through the choice.

  Args:
    weak_logits: `[B, C]`.
    strong_logits: `[B, C]`, of the same samples.
    threshold: τ.

  Returns:
    The loss and the share of samples above the threshold, both `[]`.
  """
  weak = jax.lax.stop_gradient(jax.nn.softmax(weak_logits))
  kept = (weak.max(axis=-1) > threshold).astype(strong_logits.dtype)
  losses = optax.softmax_cross_entropy_with_integer_labels(
    strong_logits, weak.argmax(axis=-1)
  )
  return (kept * losses).mean(), kept.mean()


def sparsity(*, alpha: jax.Array) -> jax.Array:
  """Returns ‖α‖², from 1/M at equal weights to 1 at a single source."""
  return jnp.sum(alpha**2)


def safe_norm(x: jax.Array) -> jax.Array:
  """Returns the L2 norm over the last axis, with gradient 0 where it is 0."""
  squares = jnp.sum(x**2, axis=-1)
  positive = squares > 0
  # `where` twice: the gradient of the branch not taken must be finite too.
  return jnp.where(positive, jnp.sqrt(jnp.where(positive, squares, 1)), 0)
