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
      made = self._compiled(self._on_device, np.pad(some, padding))
      rows.append(np.asarray(made)[: len(some)])
    return np.concatenate(rows)

  @property
  def variables(self) -> dict:
    """The arrays that `apply` takes."""
    params, stats = self._weights.params, self._weights.batch_stats
    return {
      part: {'params': params[part], 'batch_stats': stats[part]}
      for part in ('extractor', 'stage4')
    }

  def apply(self, variables: dict, pictures: jax.Array) -> jax.Array:
    """Computes the same as a call, of any number at a time, not compiled."""
    design = resnet.Design(resnet.VARIANTS[self.variant], self._width)
    x: Any = pictures.astype(jnp.float32) / 255
    x = resnet.Extractor(design).apply(variables['extractor'], x)
    x = resnet.Stage(4, design).apply(variables['stage4'], x, False)
    return pooled(x)

  @functools.cached_property
  def _on_device(self) -> dict:
    return jax.device_put(self.variables)

  @functools.cached_property
  def _compiled(self) -> jax.stages.Wrapped:
    return jax.jit(self.apply)
