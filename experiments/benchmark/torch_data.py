"""Batches for the twin that is written as people write it.

A `Dataset` per domain, Pillow in `__getitem__`, a `DataLoader` in the main
thread.
"""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

from experiments.benchmark import pillow_loop


class Images(Dataset):
  """The images of one domain; of the target with their strong view.

  Attributes:
    magnitude: of the strong views, to be drawn for every mini-batch.
  """

  def __init__(
    self,
    images: np.ndarray,
    labels: np.ndarray,
    setting: dict[str, Any],
    is_target: bool,
  ):
    self.images, self.labels = images, labels
    self.setting = setting
    self.is_target = is_target
    self.magnitude = 3
    self.rng = random.Random(0)

  def __len__(self) -> int:
    return len(self.images)

  def __getitem__(self, index: int) -> tuple[torch.Tensor, ...]:
    image = pillow_loop.weak_view(
      Image.fromarray(self.images[index]), self.rng, **self.setting['weak']
    )
    if not self.is_target:
      return _to_tensor(image), int(self.labels[index])
    exclude = tuple(self.setting['exclude'])
    strong = pillow_loop.strong_view(image, self.rng, self.magnitude, exclude)
    return _to_tensor(image), _to_tensor(strong)


class Rows(Dataset):
  """The rows of features of one domain; of the target twice."""

  def __init__(self, rows: np.ndarray, labels: np.ndarray, is_target: bool):
    self.rows, self.labels = torch.from_numpy(rows), labels
    self.is_target = is_target

  def __len__(self) -> int:
    return len(self.rows)

  def __getitem__(self, index: int) -> tuple[Any, ...]:
    row = self.rows[index]
    return (row, row) if self.is_target else (row, int(self.labels[index]))


def make_batches(
  data: dict[str, np.ndarray], setting: dict[str, Any]
) -> Iterator[dict[str, Any]]:
  """Yields batches without end from `inputs` and `labels`, the target last."""
  domains = []
  for place, (x, y) in enumerate(
    zip(data['inputs'], data['labels'], strict=True)
  ):
    is_target = place == setting['sources']
    if x.dtype == np.uint8:
      domains.append(Images(x, y, setting, is_target))
    else:
      domains.append(Rows(x, y, is_target))
  feeds = [_repeat(domain, setting['batch_size']) for domain in domains]
  while True:
    if isinstance(domains[-1], Images):
      domains[-1].magnitude = random.randint(*setting['magnitudes'])
    *sources, (weak, strong) = [next(feed) for feed in feeds]
    yield {
      'source': [x for x, _ in sources],
      'label': [y for _, y in sources],
      'weak': weak,
      'strong': strong,
    }


def split_kept(
  batch: dict[str, np.ndarray], dtype: torch.dtype = torch.float32
) -> dict[str, Any]:
  """Returns arrays `source` `[M, B, …]`, `label`, `weak`, `strong` as lists."""
  return {
    'source': [_as_input(x, dtype) for x in batch['source']],
    'label': [torch.from_numpy(y.astype(np.int64)) for y in batch['label']],
    'weak': _as_input(batch['weak'], dtype),
    'strong': _as_input(batch['strong'], dtype),
  }


def _repeat(domain: Dataset, batch_size: int) -> Iterator[Any]:
  loader = DataLoader(domain, batch_size, shuffle=True, drop_last=True)
  while True:
    yield from loader


def _to_tensor(image: Image.Image) -> torch.Tensor:
  return _as_input(np.asarray(image)[None])[0]


def _as_input(
  x: np.ndarray, dtype: torch.dtype = torch.float32
) -> torch.Tensor:
  """Images `[B, H, W, 3]` of bytes to `[B, 3, H, W]` in 0..1; rows as are."""
  if x.dtype != np.uint8:
    return torch.from_numpy(np.array(x)).to(dtype)
  maps = torch.from_numpy(np.array(x)).permute(0, 3, 1, 2)
  return maps.contiguous().to(dtype) / 255
