"""A network that is chosen when the data is opened."""

import dataclasses

from moda_jax.config import option
from moda_jax.models.layers import INITS
from moda_jax.models.networks import Networks


@dataclasses.dataclass(frozen=True)
class AutoOptions:
  """Chosen by the data: 'features', 'digits' or 'mlp'; see the log.

  Attributes:
    pretrained: weights for 'features'; resnet50.npz, if that is there.
  """

  width: float = option(1.0, above=0)
  init: str = option('torch', choices=INITS)
  pretrained: str = option('')

  def create(
    self, num_classes: int, axis_name: str | None = None, variant: str = ''
  ) -> Networks:
    """Is never called: an experiment chooses before it makes networks."""
    raise ValueError('a network must be chosen first, see training.fitting')
