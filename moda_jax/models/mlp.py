"""Dense networks for rows of features of any kind."""

import dataclasses

import jax
import jax.numpy as jnp
from flax import linen as nn

from moda_jax.config import option
from moda_jax.errors import UserError
from moda_jax.models.layers import INITS, dense, logits, scaled
from moda_jax.models.networks import Dropout, Networks

_LEAST_DEVIATION = 1e-6  # of a column; one that is constant stays at 0


@dataclasses.dataclass(frozen=True)
class DropoutOptions:
  """Options of networks whose strong view is dropout.

  Attributes:
    width: the multiple of every hidden layer's size.
    init: how layers start, a name in `layers.INITS`.
    dropout_min: the least rate of the dropout that is the strong view.
    dropout_max: the largest.
  """

  width: float = option(1.0, above=0)
  init: str = option('torch', choices=INITS)
  dropout_min: float = option(0.2, least=0, below=1)
  dropout_max: float = option(0.8, least=0, below=1)

  def __post_init__(self):
    if self.dropout_min > self.dropout_max:
      raise UserError(
        f'config.network.dropout_min = {self.dropout_min} is above '
        f'config.network.dropout_max = {self.dropout_max}.'
      )

  @property
  def dropout_range(self) -> tuple[float, float]:
    """The least and the largest rate."""
    return self.dropout_min, self.dropout_max


@dataclasses.dataclass(frozen=True)
class MlpOptions(DropoutOptions):
  """Dense layers for rows of features from anywhere.

  Attributes:
    hidden: the size of the extractor's layers, and of the discriminator's.
    layers: how many the extractor has.
    standardise: whether every column is shifted and scaled to mean 0 and
      deviation 1 over the training examples, all domains alike.
  """

  hidden: int = option(256, least=1)
  layers: int = option(1, least=1, most=16)
  standardise: bool = option(True)

  def create(
    self, num_classes: int, axis_name: str | None = None, variant: str = ''
  ) -> Networks:
    """See `NetworkOptions`; there are no batch statistics and no variants."""
    del axis_name, variant
    size = scaled(self.hidden, self.width)
    return Networks(
      extractor=Extractor((size,) * self.layers, self.init, self.standardise),
      classifier=Linear(num_classes),
      discriminator=OneLayer(size, 2, self.init),
      takes_images=False,
      dropout_range=self.dropout_range,
      width=self.width,
    )


class Extractor(nn.Module):
  """Rows `[..., F]` to `[..., sizes[-1]]`; dropout before each layer.

  Attributes:
    sizes: of the layers.
    start: how they start, a name in `layers.KERNEL_INITS`.
    standardise: whether columns are brought to mean 0 and deviation 1 over the
      rows that the network is initialised with.
  """

  sizes: tuple[int, ...]
  start: str = 'torch'
  standardise: bool = False

  @nn.compact
  def __call__(
    self, x: jax.Array, *, train: bool = False, dropout: Dropout | None = None
  ) -> jax.Array:
    del train
    if self.standardise:
      mean = self.variable('columns', 'mean', lambda: _columns(x).mean(axis=0))
      std = self.variable('columns', 'std', lambda: _columns(x).std(axis=0))
      x = (x - mean.value) / jnp.maximum(std.value, _LEAST_DEVIATION)
    for layer, features in enumerate(self.sizes):
      x = dropout(x, layer) if dropout else x
      x = nn.relu(dense(x, features, self.start))
    return dropout(x, len(self.sizes)) if dropout else x


class Linear(nn.Module):
  """Features to logits."""

  outputs: int

  @nn.compact
  def __call__(self, x: jax.Array, *, train: bool = False) -> jax.Array:
    del train
    return logits(x, self.outputs)


class OneLayer(nn.Module):
  """Features to logits, with one hidden layer."""

  hidden: int
  outputs: int
  start: str = 'torch'

  @nn.compact
  def __call__(self, x: jax.Array, *, train: bool = False) -> jax.Array:
    del train
    return logits(nn.relu(dense(x, self.hidden, self.start)), self.outputs)


def _columns(x: jax.Array) -> jax.Array:
  return x.reshape(-1, x.shape[-1])
