"""Pictures of one size that stay on disk and are decoded when they are read."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from moda_jax.data.pictures import UnsizedPictures


class StreamedPictures:
  """Images `[N, size, size, 3]` of bytes, read by index like an array.

  Any number of threads may read at once. The bytes are those that an array of
  the same pictures would hold.

  Attributes:
    shape: as an array's.
    dtype: as an array's.
  """

  dtype = np.dtype(np.uint8)
  ndim = 4

  def __init__(self, pictures: UnsizedPictures, size: int):
    """Reads nothing yet.

    Args:
      pictures: of any sizes.
      size: what each is brought to.
    """
    self._pictures = pictures
    self._size = size
    self.shape = (len(pictures), size, size, 3)

  def __len__(self) -> int:
    return self.shape[0]

  def __getitem__(self, key: Any) -> np.ndarray:
    """Reads one picture or those of a slice or of indices, in their order."""
    places = np.arange(len(self))[key]
    if places.ndim == 0:
      return self._pictures.read([int(places)], self._size)[0]
    if not places.size:
      return np.zeros((0, *self.shape[1:]), self.dtype)
    return self._pictures.read(places.tolist(), self._size)

  def read(self, places: Iterable[int]) -> np.ndarray:
    """Reads few pictures one after another, for callers with own threads."""
    return self._pictures.read_in_turn(places, self._size)

  def select(self, places: np.ndarray) -> 'StreamedPictures':
    """Returns some of them, still unread."""
    return StreamedPictures(self._pictures[places], self._size)
