"""Pictures that are decoded when they are read, some at a time."""

import abc
import concurrent.futures
import hashlib
import os
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from moda_jax.data.images import resize
from moda_jax.errors import UserError
from moda_jax.files import images


class Pictures(Protocol):
  """Pictures of any size, by their places."""

  def __len__(self) -> int: ...

  def digest(self, places: range) -> list[bytes]:
    """Returns what tells each picture from others, without decoding it."""
    ...

  def read(self, places: Sequence[int], size: int) -> np.ndarray:
    """Returns pictures as bytes `[n, size, size, 3]`."""
    ...


class UnsizedPictures(abc.ABC):
  """Pictures that differ in size, decoded when they are read.

  Attributes:
    place: where they are, in messages.
  """

  place: object

  @abc.abstractmethod
  def __len__(self) -> int:
    """Returns their number."""

  @abc.abstractmethod
  def __getitem__(self, places: Iterable[int]) -> 'UnsizedPictures':
    """Returns some of them."""

  @abc.abstractmethod
  def _digest(self, place: int) -> bytes: ...

  @abc.abstractmethod
  def _open(self, place: int, size: int) -> np.ndarray:
    """Returns one, `[H, W, 3]` bytes, or raises `UserError`.

    It will be resized to `size`; see `files.images.decode`.
    """

  @abc.abstractmethod
  def _side(self, place: int) -> int: ...

  @property
  def shape(self) -> tuple[int, ...]:
    """Their number alone: they differ in size."""
    return (len(self),)

  @property
  def ndim(self) -> int:
    """The number of axes, which NumPy would count by taking them apart."""
    return 1

  def digest(self, places: range) -> list[bytes]:
    """See `Pictures`."""
    return _in_threads(self._digest, places)

  def read(self, places: Sequence[int], size: int) -> np.ndarray:
    """See `Pictures`; raises one error that names all unreadable ones."""
    return self._stack(_in_threads(lambda i: self._read(i, size), places))

  def read_in_turn(self, places: Iterable[int], size: int) -> np.ndarray:
    """Returns the same as `read`, without threads of its own."""
    return self._stack([self._read(i, size) for i in places])

  def _stack(self, made: list[Any]) -> np.ndarray:
    self._refuse([result for result in made if isinstance(result, UserError)])
    return np.stack(made)

  def _refuse(self, errors: list[UserError]) -> None:
    """Raises one error for all that cannot be read, if there are any."""
    images.refuse_unreadable(
      errors,
      len(self),
      self.place,
      'Mend or remove them, or go on without them: skip_unreadable=true.',
    )

  def find_unreadable(self) -> dict[int, UserError]:
    """Decodes all; returns what is wrong with those that cannot be read."""
    places = range(len(self))
    results = _in_threads(lambda i: self._read(i, 1), places)
    made = zip(places, results, strict=True)
    return {i: result for i, result in made if isinstance(result, UserError)}

  def sides(self, places: Sequence[int]) -> list[int]:
    """Returns the shorter side of pictures, of those that can be read."""
    found = _in_threads(self._side, places)
    return [side for side in found if side]

  def _read(self, place: int, size: int) -> np.ndarray | UserError:
    try:
      return resize(self._open(place, size), size)
    except UserError as error:
      return error


class PictureFiles(UnsizedPictures):
  """Pictures in files of any size, format and mode.

  Attributes:
    files: their paths.
    root: the folder that messages name them from, if there is one.
  """

  def __init__(
    self, files: Sequence[pathlib.Path], root: pathlib.Path | None = None
  ):
    self.files = list(files)
    self.root = root
    self.place = root or 'the list'
    self._digests: dict[pathlib.Path, bytes] = {}  # each file is read once

  def __len__(self) -> int:
    return len(self.files)

  def __getitem__(self, places: Iterable[int]) -> 'PictureFiles':
    some = PictureFiles([self.files[i] for i in places], self.root)
    some._digests = self._digests
    return some

  def lengths(self) -> list[int]:
    """Returns how many bytes every file has; −1 where it is not there."""
    return [_length(file) for file in self.files]

  def _digest(self, place: int) -> bytes:
    """Files of the same content are the same picture."""
    file = self.files[place]
    if file not in self._digests:
      try:
        self._digests[file] = hashlib.sha256(file.read_bytes()).digest()
      except OSError:
        self._digests[file] = b''  # it is named when it is to be decoded
    return self._digests[file]

  def _open(self, place: int, size: int) -> np.ndarray:
    """Turns it as its EXIF orientation says."""
    file = self.files[place]
    name = file.relative_to(self.root) if self.root else ''
    return read_picture(file, name, size)

  def _side(self, place: int) -> int:
    return images.shorter_side(self.files[place])


class UnequalImages(UnsizedPictures):
  """Images in memory that differ in size, `[H, W, 3]` bytes each."""

  place = 'the list'

  def __init__(self, arrays: Sequence[np.ndarray]):
    self._arrays = list(arrays)

  def __len__(self) -> int:
    return len(self._arrays)

  def __getitem__(self, places: Iterable[int]) -> 'UnequalImages':
    return UnequalImages([self._arrays[i] for i in places])

  def _digest(self, place: int) -> bytes:
    return _digest_array(self._arrays[place])

  def _open(self, place: int, size: int) -> np.ndarray:
    del size
    return self._arrays[place]

  def _side(self, place: int) -> int:
    return min(self._arrays[place].shape[:2])


class ArrayPictures:
  """Images in memory, `[N, H, W, 3]` bytes, all of one size."""

  def __init__(self, images: np.ndarray):
    self._images = images

  def __len__(self) -> int:
    return len(self._images)

  def digest(self, places: range) -> list[bytes]:
    """See `Pictures`."""
    return [_digest_array(self._images[i]) for i in places]

  def read(self, places: Sequence[int], size: int) -> np.ndarray:
    """See `Pictures`."""
    return np.stack([resize(self._images[i], size) for i in places])


def as_pictures(inputs: Any) -> Pictures:
  """Returns a domain's images as pictures that are read some at a time."""
  is_read = not isinstance(inputs, UnsizedPictures)
  return ArrayPictures(inputs) if is_read else inputs


def read_picture(
  path: pathlib.Path, name: str | os.PathLike = '', size: int = 0
) -> np.ndarray:
  """Reads one picture, upright, `[H, W, 3]` bytes.

  Args:
    path: its file.
    name: what errors call it; the path by default.
    size: what it will be resized to, see `files.images.decode`.
  """
  data = images.read_file(path, name)
  picture = images.decode(data, str(name or path), size)
  return np.asarray(images.to_rgb(images.turn_upright(picture)))


def _length(file: pathlib.Path) -> int:
  try:
    return file.stat().st_size
  except OSError:
    return -1


def _digest_array(image: np.ndarray) -> bytes:
  content = np.ascontiguousarray(image).tobytes()
  return hashlib.sha256(str(image.shape).encode() + content).digest()


def _in_threads(function: Any, places: Any) -> list[Any]:
  with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    return list(pool.map(function, places))
