"""Pictures that are decoded when they are read, some at a time."""

import concurrent.futures
import hashlib
import os
import pathlib
from collections.abc import Sequence
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

  def read(self, places: range, size: int) -> np.ndarray:
    """Returns pictures as bytes `[n, size, size, 3]`."""
    ...


class PictureFiles:
  """Pictures in files of any size, format and mode.

  Attributes:
    files: their paths.
    root: the folder that messages name them from.
  """

  def __init__(self, files: Sequence[pathlib.Path], root: pathlib.Path):
    self.files = list(files)
    self.root = root

  def __len__(self) -> int:
    return len(self.files)

  @property
  def shape(self) -> tuple[int, ...]:
    """Their number alone: they differ in size."""
    return (len(self.files),)

  def digest(self, places: range) -> list[bytes]:
    """See `Pictures`; files of the same content are the same picture."""
    return _in_threads(self._digest, places)

  def read(self, places: range, size: int) -> np.ndarray:
    """See `Pictures`; they are turned as their EXIF orientation says."""
    made = _in_threads(lambda i: self._read(i, size), places)
    errors = [result for result in made if isinstance(result, UserError)]
    images.refuse_unreadable(errors, len(self), self.root)
    return np.stack(made)

  def sides(self, places: Sequence[int]) -> list[int]:
    """Returns the shorter side of pictures, from the heads of their files."""
    found = _in_threads(self._side, places)
    return [side for side in found if side]

  def _digest(self, place: int) -> bytes:
    try:
      return hashlib.sha256(self.files[place].read_bytes()).digest()
    except OSError as error:
      raise UserError(str(error)) from error

  def _read(self, place: int, size: int) -> np.ndarray | UserError:
    file = self.files[place]
    try:
      return resize(read_picture(file, file.relative_to(self.root)), size)
    except UserError as error:
      return error

  def _side(self, place: int) -> int:
    return images.shorter_side(self.files[place])


class ArrayPictures:
  """Images in memory, `[N, H, W, 3]` bytes, all of one size."""

  def __init__(self, images: np.ndarray):
    self._images = images

  def __len__(self) -> int:
    return len(self._images)

  def digest(self, places: range) -> list[bytes]:
    """See `Pictures`."""
    shape = str(self._images.shape[1:]).encode()
    chosen = (np.ascontiguousarray(self._images[i]) for i in places)
    return [
      hashlib.sha256(shape + image.tobytes()).digest() for image in chosen
    ]

  def read(self, places: range, size: int) -> np.ndarray:
    """See `Pictures`."""
    return np.stack([resize(self._images[i], size) for i in places])


def as_pictures(inputs: Any) -> Pictures:
  """Returns a domain's images as pictures that are read some at a time."""
  return inputs if isinstance(inputs, PictureFiles) else ArrayPictures(inputs)


def read_picture(
  path: pathlib.Path, name: str | os.PathLike = ''
) -> np.ndarray:
  """Reads one picture, upright, `[H, W, 3]` bytes; errors call it `name`."""
  try:
    picture = images.decode(path.read_bytes(), str(name or path))
  except OSError as error:
    raise UserError(str(error)) from error
  return np.asarray(images.to_rgb(images.turn_upright(picture)))


def _in_threads(function: Any, places: Any) -> list[Any]:
  with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    return list(pool.map(function, places))
