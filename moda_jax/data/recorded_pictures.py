"""Examples of a TFDS data set in ArrayRecord files, read by index."""

import hashlib
import io
from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow_datasets as tfds

from moda_jax.data.damage import damage_error
from moda_jax.data.pictures import UnsizedPictures
from moda_jax.errors import UserError
from moda_jax.files import images


def has_random_access(builder: tfds.core.DatasetBuilder) -> bool:
  """Says whether a prepared data set can be read by index."""
  return builder.info.file_format is tfds.core.FileFormat.ARRAY_RECORD


class Records:
  """The examples of a split that was prepared as ArrayRecord."""

  def __init__(
    self,
    builder: tfds.core.DatasetBuilder,
    split: str,
    experiment: str,
    decoders: Any = None,
  ):
    """Opens nothing yet.

    Args:
      builder: of the data set.
      split: its name.
      experiment: whose data set it is, for the way to prepare it again.
      decoders: as TFDS has them.
    """
    self._builder, self._split, self._experiment = builder, split, experiment
    self._examples = builder.as_data_source(split=split, decoders=decoders)

  def __len__(self) -> int:
    return len(self._examples)

  def __str__(self) -> str:
    return f'{self._builder.info.full_name}, {self._split}'

  def read(self, i: int) -> dict[str, Any]:
    """Reads an example; raises `UserError` where its file is damaged."""
    try:
      return self._examples[i]
    except RuntimeError as error:  # whatever is wrong with the file
      reason = f'{self.name(i)} ({error})'
      raise damage_error(self._builder, self._experiment, reason) from error

  def name(self, i: int) -> str:
    """Returns what errors call an example."""
    return f'example {i} of {self._split}'

  def picture_error(self, reason: images.UnreadableImage) -> UserError:
    """Returns the error of an example whose picture cannot be decoded."""
    what = 'is damaged or holds a picture that is not read'
    return damage_error(self._builder, self._experiment, str(reason), what)


class RecordedPictures(UnsizedPictures):
  """The images of a split, which may differ in size, left on disk."""

  def __init__(
    self, builder: tfds.core.DatasetBuilder, split: str, experiment: str
  ):
    """Opens nothing yet; see `Records`."""
    decoders = {'image': tfds.decode.SkipDecoding()}
    self._records = Records(builder, split, experiment, decoders)
    self._places = np.arange(len(self._records))
    self.place = self._records

  def __len__(self) -> int:
    return len(self._places)

  def __getitem__(self, places: Iterable[int]) -> 'RecordedPictures':
    some = object.__new__(RecordedPictures)
    some.place, some._records = self.place, self._records
    some._places = self._places[np.asarray(places)]
    return some

  def read_labels(self) -> np.ndarray:
    """Reads the label of every example."""
    return np.array(
      [self._records.read(int(i))['label'] for i in self._places], np.int32
    )

  def _encoded(self, place: int) -> bytes:
    return self._records.read(int(self._places[place]))['image']

  def _digest(self, place: int) -> bytes:
    return hashlib.sha256(self._encoded(place)).digest()

  def _open(self, place: int, size: int) -> np.ndarray:
    """Leaves it as it lies, as TFDS does."""
    data, name = self._encoded(place), self._records.name(self._places[place])
    try:
      return np.asarray(images.to_rgb(images.decode(data, name, size)))
    except images.UnreadableImage as error:
      raise self._records.picture_error(error) from error

  def _refuse(self, errors: list[UserError]) -> None:
    """Raises the first, which says what to do about the whole data set."""
    for error in errors:
      raise error

  def _side(self, place: int) -> int:
    try:
      return images.shorter_side(io.BytesIO(self._encoded(place)))
    except UserError:  # which names the example when it is to be decoded
      return 0
