"""What a method knows about an experiment's networks."""

from typing import Any, NamedTuple, Protocol

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
    dropout_range: of a network whose strong view is dropout: the least and the
      largest rate. Its extractor takes `dropout=Dropout(…)` and applies it to
      the last groups alone.
    width: the multiple of hidden layers, for heads that a method adds.
    variant: which published weights the networks are made for.
    weights: what parameters start from; None where all start at random.
  """

  extractor: nn.Module
  classifier: nn.Module
  discriminator: nn.Module
  takes_images: bool = True
  dropout_range: tuple[float, float] | None = None
  width: float = 1.0
  variant: str = ''
  weights: Any = None


class NetworkOptions(Protocol):
  """A dataclass of a network's options, which makes the networks."""

  def create(
    self, num_classes: int, axis_name: str | None = None, variant: str = ''
  ) -> Networks:
    """Returns the networks.

    Args:
      num_classes: how many logits the classifier gives.
      axis_name: the mapped axis of devices that a batch is split over.
      variant: of networks whose parameters are known already; their pretrained
        weights are then not read.
    """
    ...


class Dropout(NamedTuple):
  """How much of the last groups of inputs is dropped, layer by layer.

  Attributes:
    rate: the probability of each value, a scalar.
    keys: one per example of these groups, `[groups, B]`: what is dropped of an
      example depends on nothing else, so that it is the same on any number of
      devices.
  """

  rate: jax.Array
  keys: jax.Array

  def __call__(self, x: jax.Array, layer: int) -> jax.Array:
    """Returns `x` `[G, B, F]` with dropout in its last groups, scaled up."""

    def drop(key: jax.Array, values: jax.Array) -> jax.Array:
      key = jax.random.fold_in(key, layer)
      kept = jax.random.bernoulli(key, 1 - self.rate, values.shape)
      return jnp.where(kept, values / (1 - self.rate), 0)

    kept = len(x) - len(self.keys)
    dropped = jax.vmap(jax.vmap(drop))(self.keys, x[kept:])
    return jnp.concatenate([x[:kept], dropped])


def pooled(z: jax.Array, batch_axes: int = 1) -> jax.Array:
  """Averages features `[batch axes…, space…, F]` over space, in float32."""
  return at_least_float32(z).mean(axis=tuple(range(batch_axes, z.ndim - 1)))


def at_least_float32(x: jax.Array) -> jax.Array:
  """Returns `x` for sums to be taken of, where networks compute in bfloat16."""
  return x.astype(jnp.promote_types(x.dtype, jnp.float32))
