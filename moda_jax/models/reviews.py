"""The networks of the reviews experiment, for 5000 features of words."""

import dataclasses

import jax
from flax import linen as nn

from moda_jax.config import option
from moda_jax.errors import UserError
from moda_jax.models.layers import KERNEL_INITS, dense, logits, scaled
from moda_jax.models.networks import Dropout, Networks

_HIDDEN = (1000, 500, 100)


@dataclasses.dataclass(frozen=True)
class ReviewsOptions:
  """Dense layers for features of words, as in the paper's reviews.

  Attributes:
    dropout_min: the least rate of the dropout that is the strong view.
    dropout_max: the largest.
  """

  width: float = option(1.0, above=0)
  init: str = option('torch', choices=tuple(KERNEL_INITS))
  dropout_min: float = option(0.2, least=0, below=1)
  dropout_max: float = option(0.8, least=0, below=1)

  def __post_init__(self):
    if self.dropout_min > self.dropout_max:
      raise UserError(
        f'config.network.dropout_min = {self.dropout_min} is above '
        f'config.network.dropout_max = {self.dropout_max}.'
      )

  def create(
    self, num_classes: int, axis_name: str | None = None, variant: str = ''
  ) -> Networks:
    """See `NetworkOptions`; there are no batch statistics and no variants."""
    del axis_name, variant
    networks = create_networks(num_classes, self.width, self.init)
    rates = (self.dropout_min, self.dropout_max)
    return networks._replace(dropout_range=rates)


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
    dropout_range=(0.2, 0.8),
    width=width,
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
