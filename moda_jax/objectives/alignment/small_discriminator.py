"""A discriminator that is made by an alignment, not by the experiment."""

import jax
from flax import linen as nn

HIDDEN = 1024


class SmallDiscriminator(nn.Module):
  """Two hidden layers, on pooled features or products of them."""

  hidden: int

  @nn.compact
  def __call__(self, x: jax.Array) -> jax.Array:
    """Maps features `[…, F]` to the logits of source and target."""
    for _ in range(2):
      x = nn.relu(nn.Dense(self.hidden)(x))
    return nn.Dense(2)(x)
