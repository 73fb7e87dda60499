"""The networks of the reviews experiment, for 5000 features of words."""

import dataclasses

from moda_jax.models.layers import scaled
from moda_jax.models.mlp import DropoutOptions, Extractor, Linear
from moda_jax.models.networks import Networks

_HIDDEN = (1000, 500, 100)


@dataclasses.dataclass(frozen=True)
class ReviewsOptions(DropoutOptions):
  """Dense layers for features of words, as in the paper's reviews."""

  def create(
    self, num_classes: int, axis_name: str | None = None, variant: str = ''
  ) -> Networks:
    """See `NetworkOptions`; there are no batch statistics and no variants."""
    del axis_name, variant
    networks = create_networks(num_classes, self.width, self.init)
    return networks._replace(dropout_range=self.dropout_range)


def create_networks(
  num_classes: int, width: float = 1.0, init: str = 'torch'
) -> Networks:
  """Returns the paper's reviews networks.

  Args:
    num_classes: how many logits the classifier gives.
    width: the multiple of every hidden layer's size.
    init: how layers start, a name in `layers.KERNEL_INITS`.
  """
  sizes = tuple(scaled(features, width) for features in _HIDDEN)
  return Networks(
    extractor=Extractor(sizes, init),
    classifier=Linear(num_classes),
    discriminator=Linear(2),
    takes_images=False,
    dropout_range=(0.2, 0.8),
    width=width,
  )
