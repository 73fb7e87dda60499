"""Pictures of a TFDS data set in ArrayRecord files, read by index."""

import hashlib
import io
from collections.abc import Iterable

import numpy as np
import tensorflow_datasets as tfds
from PIL import Image

from moda_jax.data.pictures import UnsizedPictures
from moda_jax.files import images


def has_random_access(builder: tfds.core.DatasetBuilder) -> bool:
  """Says whether a prepared data set can be read by index."""
  return builder.info.file_format is tfds.core.FileFormat.ARRAY_RECORD


class RecordedPictures(UnsizedPictures):
  """The images of a split, which may differ in size, left on disk."""

  def __init__(self, builder: tfds.core.DatasetBuilder, split: str):
    """Opens the files of a split that was prepared as ArrayRecord."""
    self.place = f'{builder.info.full_name}, {split}'
    self._examples = builder.as_data_source(
      split=split, decoders={'image': tfds.decode.SkipDecoding()}
    )
    self._places = np.arange(len(self._examples))

  def __len__(self) -> int:
    return len(self._places)

  def __getitem__(self, places: Iterable[int]) -> 'RecordedPictures':
    some = object.__new__(RecordedPictures)
    some.place, some._examples = self.place, self._examples
    some._places = self._places[np.asarray(places)]
    return some

  def read_labels(self) -> np.ndarray:
    """Reads the label of every example."""
    return np.array(
      [self._examples[int(i)]['label'] for i in self._places], np.int32
    )

  def _encoded(self, place: int) -> bytes:
    return self._examples[int(self._places[place])]['image']

  def _digest(self, place: int) -> bytes:
    return hashlib.sha256(self._encoded(place)).digest()

  def _open(self, place: int, size: int) -> np.ndarray:
    """Leaves it as it lies, as TFDS does."""
    name = f'example {self._places[place]}'
    picture = images.decode(self._encoded(place), name, size)
    return np.asarray(images.to_rgb(picture))

  def _side(self, place: int) -> int:
    return min(Image.open(io.BytesIO(self._encoded(place))).size)
