"""New inputs of a trained model, prepared as its training examples were."""

import os
import pathlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse

from moda_jax.data.images import pad_mnist, resize, to_bytes, to_rgb
from moda_jax.errors import UserError
from moda_jax.files import images as image_files

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
  if isinstance(inputs, str | os.PathLike):
    raise UserError(f"'{inputs}' is a single path; give a list: {_KINDS}.")
  listed = [_to_image(image) for image in _iterate(inputs)]
  if not listed:
    raise UserError(f'there are no inputs; give {_KINDS}.')
  if padded:
    listed = [pad_mnist(image[None])[0] for image in listed]
  return np.stack([_fit(image, shape) for image in listed])


def _iterate(inputs: Any) -> Iterable[Any]:
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


def _to_image(image: Any) -> np.ndarray:
  """Returns one image as bytes, `[H, W, 3]`."""
  if isinstance(image, str | os.PathLike):
    return _read(pathlib.Path(image))
  image = np.asarray(image)
  image = image[..., None] if image.ndim == 2 else image
  if image.ndim != 3 or image.shape[-1] not in (1, 3) or 0 in image.shape:
    raise UserError(f'an image of shape {image.shape}; give {_KINDS}.')
  return to_rgb(to_bytes(image, 'images'))


def _read(path: pathlib.Path) -> np.ndarray:
  try:
    picture = image_files.decode(path.read_bytes(), str(path))
  except (image_files.UnreadableImage, OSError) as error:
    raise UserError(str(error)) from error
  return np.asarray(image_files.to_rgb(image_files.turn_upright(picture)))


def _fit(image: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
  if image.shape == shape:
    return image
  if shape[0] != shape[1]:
    raise UserError(
      f'an image of {image.shape[0]} × {image.shape[1]}; this model takes '
      f'{shape[0]} × {shape[1]} alone, which is not square.'
    )
  return resize(image, shape[0])


def _to_rows(inputs: Any) -> np.ndarray:
  try:
    return np.asarray(inputs, np.float32)
  except (TypeError, ValueError) as error:
    raise UserError(f'rows of features must be numbers: {error}.') from error


def _check_rows(inputs: Any, features: int) -> Any:
  rows = inputs
  if scipy.sparse.issparse(inputs):
    rows = scipy.sparse.csr_array(inputs)
  else:
    rows = _to_rows(inputs)
  if rows.ndim != 2 or rows.shape[1] != features or not rows.shape[0]:
    raise UserError(
      f'inputs of shape {rows.shape}; rows of {features} features are needed, '
      f'[N, {features}].'
    )
  return rows.astype(np.float32)
