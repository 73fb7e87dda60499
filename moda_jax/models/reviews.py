"""The networks of the reviews experiment, for 5000 features of words."""

import jax
from flax import linen as nn

from moda_jax.models.layers import dense, logits, scaled
from moda_jax.models.networks import Dropout, Networks

_HIDDEN = (1000, 500, 100)


def create_networks(
  num_classes: int, width: float = 1.0, init: str = 'torch'
) -> Networks:
  """Returns the paper's reviews networks.

  Args:
    num_classes: how many logits the classifier gives.
    width: the multiple of every hidden layer's size.
    init: how layers start, a name in `layers.KERNEL_INITS`.
  """
  return Networks(
    extractor=Extractor(width, init),
    classifier=Linear(num_classes),
    discriminator=Linear(2),
    takes_images=False,
    has_dropout=True,
  )


class Extractor(nn.Module):
  """Features `[..., F]` to `[..., 100·width]`; dropout before each layer."""

  width: float = 1.0
  start: str = 'torch'

  @nn.compact
  def __call__(
    self, x: jax.Array, *, train: bool = False, dropout: Dropout | None = None
  ) -> jax.Array:
    del train
    for layer, features in enumerate(_HIDDEN):
      x = dropout(x, layer) if dropout else x
      x = nn.relu(dense(x, scaled(features, self.width), self.start))
    return dropout(x, len(_HIDDEN)) if dropout else x


class Linear(nn.Module):
  """Features to logits."""

  outputs: int

  @nn.compact
  def __call__(self, x: jax.Array, *, train: bool = False) -> jax.Array:
    del train
    return logits(x, self.outputs)
