"""What a method knows of an experiment's networks."""

from typing import NamedTuple

import jax
from flax import linen as nn


class Networks(NamedTuple):
  """The three networks of an experiment, not yet bound to parameters.

  Each is called as `module(x, train=...)` with any number of leading axes in
  `x`, `[..., features]`. In training these are `[group, batch]`: a group is
  one domain or view, and a network that keeps batch statistics takes them
  within a group.

  Attributes:
    extractor: inputs to features, `g` in the paper.
    classifier: features to class logits, `h`.
    discriminator: features to two logits, source and target, `d`.
  """

  extractor: nn.Module
  classifier: nn.Module
  discriminator: nn.Module


def pooled(z: jax.Array, batch_axes: int = 1) -> jax.Array:
  """Features `[batch axes…, space…, F]` averaged over space."""
  return z.mean(axis=tuple(range(batch_axes, z.ndim - 1)))
