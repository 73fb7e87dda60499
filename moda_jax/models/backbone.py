"""ResNet-50 with pretrained weights as a fixed function of pictures."""

import functools
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from moda_jax.models import resnet
from moda_jax.models.networks import pooled
from moda_jax.models.published_weights import Pretrained

# Pictures at a time: more take more memory and no less time.
BATCH = 32


class Backbone:
  """Pictures to the 2,048 features before the weights' own last layer.

  Attributes:
    path: of the weights.
    variant: of the weights, see `resnet.VARIANTS`.
    features: how many there are.
  """

  def __init__(self, weights: Pretrained):
    self._weights = weights
    self.path: pathlib.Path = weights.path
    self.variant = weights.variant
    stem = weights.params['extractor']['conv_stem']['kernel']
    self._width = stem.shape[-1] / 64
    self.features = round(2048 * self._width)

  @functools.cached_property
  def description(self) -> str:
    """Which weights these are, whatever their file is called."""
    return self._weights.describe()

  def __call__(self, pictures: np.ndarray) -> np.ndarray:
    """Returns features `[N, F]` of pictures `[N, H, W, 3]`, bytes."""
    rows = []
    for start in range(0, len(pictures), BATCH):
      some = pictures[start : start + BATCH]
      # Always as many, so that one program serves.
      padding = ((0, BATCH - len(some)), (0, 0), (0, 0), (0, 0))
      made = self._apply(self._variables, np.pad(some, padding))
      rows.append(np.asarray(made)[: len(some)])
    return np.concatenate(rows)

  @functools.cached_property
  def _variables(self) -> dict:
    params, stats = self._weights.params, self._weights.batch_stats
    return jax.device_put(
      {
        part: {'params': params[part], 'batch_stats': stats[part]}
        for part in ('extractor', 'stage4')
      }
    )

  @functools.cached_property
  def _apply(self) -> jax.stages.Wrapped:
    design = resnet.Design(resnet.VARIANTS[self.variant], self._width)
    extractor, stage4 = resnet.Extractor(design), resnet.Stage(4, design)

    def apply(variables: dict, pictures: jax.Array) -> jax.Array:
      x: Any = pictures.astype(jnp.float32) / 255
      x = extractor.apply(variables['extractor'], x)
      x = stage4.apply(variables['stage4'], x, False)
      return pooled(x)

    return jax.jit(apply)
