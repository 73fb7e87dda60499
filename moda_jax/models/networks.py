"""What a method knows of an experiment's networks."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
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
    takes_images: whether inputs are images `[..., H, W, 3]`; else they are
      rows of features `[..., F]`.
    has_dropout: whether the extractor takes `dropout=Dropout(…)` and applies
      it to the last group alone, which makes it the strong view.
  """

  extractor: nn.Module
  classifier: nn.Module
  discriminator: nn.Module
  takes_images: bool = True
  has_dropout: bool = False


class Dropout(NamedTuple):
  """How much of the last group of inputs is dropped, layer by layer.

  Attributes:
    rate: the probability of each value, a scalar.
    keys: one an example, `[B]`: what is dropped of an example depends on
      nothing else, so that it is the same on any number of devices.
  """

  rate: jax.Array
  keys: jax.Array

  def __call__(self, x: jax.Array, layer: int) -> jax.Array:
    """`x` `[G, B, F]` with its last group dropped and scaled to make up."""

    def drop(key: jax.Array, values: jax.Array) -> jax.Array:
      key = jax.random.fold_in(key, layer)
      kept = jax.random.bernoulli(key, 1 - self.rate, values.shape)
      return jnp.where(kept, values / (1 - self.rate), 0)

    return jnp.concatenate([x[:-1], jax.vmap(drop)(self.keys, x[-1])[None]])


def pooled(z: jax.Array, batch_axes: int = 1) -> jax.Array:
  """Features `[batch axes…, space…, F]` averaged over space, in float32."""
  return at_least_float32(z).mean(axis=tuple(range(batch_axes, z.ndim - 1)))


def at_least_float32(x: jax.Array) -> jax.Array:
  """What sums are to be taken of, where networks compute in bfloat16."""
  return x.astype(jnp.promote_types(x.dtype, jnp.float32))
