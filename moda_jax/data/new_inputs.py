"""New inputs of a trained model, prepared as its training examples were."""

import os
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from moda_jax.data.images import pad_mnist, resize, to_bytes, to_rgb
from moda_jax.data.pictures import read_picture
from moda_jax.data.rows import check_rows
from moda_jax.errors import UserError

_AT_A_TIME = 256
_KINDS = (
  'images as [N, H, W], [N, H, W, 1] or [N, H, W, 3] arrays, a list of such '
  'images of any size, or a list of paths'
)


def prepare_new_inputs(
  inputs: Any, shape: tuple[int, ...], padded: bool = False
) -> Any:
  """Returns inputs as the model takes them, `[N, …]`.

  Args:
    inputs: images as an array, as a list of arrays of any size or of paths,
      bytes or floats in 0..1; or rows of features, dense or sparse.
    shape: of one input of the model.
    padded: whether images of MNIST's size are padded rather than resized.
  """
  if len(shape) == 1:
    return _check_rows(inputs, shape[0])
  return np.concatenate(list(iter_new_images(inputs, shape, padded)))


def iter_new_images(
  inputs: Any, shape: tuple[int, ...], padded: bool = False
) -> Iterator[np.ndarray]:
  """Yields images as the model takes them, some at a time, `[n, H, W, 3]`.

  Args:
    inputs: images, see `prepare_new_inputs`.
    shape: of one input of the model.
    padded: whether images of MNIST's size are padded rather than resized.
  """
  images = _list_images(inputs)
  if not len(images):
    raise UserError(f'there are no inputs; give {_KINDS}.')
  for start in range(0, len(images), _AT_A_TIME):
    size = 0 if padded else shape[0]
    some = [to_image(x, size) for x in images[start : start + _AT_A_TIME]]
    if padded:
      some = [pad_mnist(image[None])[0] for image in some]
    yield np.stack([_fit(image, shape) for image in some])


def _list_images(inputs: Any) -> Sequence[Any] | np.ndarray:
  if isinstance(inputs, str | os.PathLike):
    raise UserError(f"'{inputs}' is a single path; give a list: {_KINDS}.")
  if isinstance(inputs, list | tuple):
    return inputs
  array = np.asarray(inputs)
  if array.ndim == 3 and array.shape[-1] in (1, 3):
    raise UserError(
      f'inputs of shape {array.shape} are a single image; give images[None].'
    )
  if array.ndim not in (3, 4):
    raise UserError(f'inputs of shape {array.shape}; give {_KINDS}.')
  return array


def to_image(image: Any, size: int = 0) -> np.ndarray:
  """Returns one image, an array or a path, as bytes, `[H, W, 3]`.

  Args:
    image: the image.
    size: what it will be resized to, see `files.images.decode`.
  """
  if isinstance(image, str | os.PathLike):
    return read_picture(pathlib.Path(image), size=size)
  image = np.asarray(image)
  image = image[..., None] if image.ndim == 2 else image
  if image.ndim != 3 or image.shape[-1] not in (1, 3) or 0 in image.shape:
    raise UserError(f'an image of shape {image.shape}; give {_KINDS}.')
  return to_rgb(to_bytes(image, 'images'))


def _fit(image: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
  if image.shape == shape:
    return image
  if shape[0] != shape[1]:
    raise UserError(
      f'an image of {image.shape[0]} × {image.shape[1]}; this model takes '
      f'{shape[0]} × {shape[1]} alone, which is not square.'
    )
  return resize(image, shape[0])


def _check_rows(inputs: Any, features: int) -> Any:
  rows = check_rows(inputs, 'inputs')
  if rows.shape[1] != features:
    raise UserError(
      f'inputs of shape {rows.shape}; rows of {features} features are needed, '
      f'[N, {features}].'
    )
  return rows
