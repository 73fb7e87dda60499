"""What the digit data sets share: features, padding, checked labels."""

import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow_datasets as tfds

from moda_jax.errors import UserError
from moda_jax.files import raw_arrays

SIZE = 32
Examples = Iterator[tuple[str, dict[str, Any]]]


def make_info(
  builder: tfds.core.DatasetBuilder,
  description: str,
  homepage: str,
  citation: str,
) -> tfds.core.DatasetInfo:
  """Returns the info of a data set of 32×32 RGB digits."""
  return tfds.core.DatasetInfo(
    builder=builder,
    description=description,
    features=tfds.features.FeaturesDict(
      {
        'image': tfds.features.Image(shape=(SIZE, SIZE, 3), dtype=np.uint8),
        'label': tfds.features.ClassLabel(num_classes=10),
      }
    ),
    supervised_keys=('image', 'label'),
    homepage=homepage,
    citation=citation,
    metadata=tfds.core.MetadataDict(),
  )


def pad_to_rgb(image: np.ndarray) -> np.ndarray:
  """Returns MNIST's uint8 [28, 28] in a black frame of two, [32, 32, 3]."""
  padded = np.pad(image, 2)
  return np.stack([padded] * 3, axis=-1)


def check_labels(
  labels: np.ndarray, lowest: int, highest: int, place: object
) -> None:
  """Refuses labels that are out of range or not whole, and a lack of any."""
  if not labels.size:
    raise UserError(f'{place}: there are no labels; the split would be empty.')
  wrong = np.flatnonzero(
    (labels < lowest) | (labels > highest) | (labels != np.floor(labels))
  )
  if wrong.size:
    first = wrong[0]
    raise UserError(
      f'{place}: {wrong.size:,} of {labels.size:,} labels are out of range; '
      f'number {first} is {labels[first]}, allowed are {lowest} to {highest}.'
    )


def read_mat_digits(
  path: pathlib.Path, lowest: int, highest: int
) -> tuple[np.ndarray, np.ndarray]:
  """Reads `X` [32, 32, 3, N] and `y` of SVHN's `.mat` layout.

  Args:
    path: the file.
    lowest: the smallest label allowed.
    highest: the largest label allowed; SVHN's 10 means the digit 0.

  Returns:
    Images uint8 [N, 32, 32, 3] and labels int64 [N], 0 to 9.
  """
  arrays = raw_arrays.read_mat(path, ('X', 'y'))
  images, labels = arrays['X'], arrays['y'].ravel()
  if images.dtype != np.uint8 or images.shape[:3] != (SIZE, SIZE, 3):
    raise UserError(
      f'{path}: X is {images.dtype} {images.shape}; '
      f'uint8 ({SIZE}, {SIZE}, 3, N) is needed.'
    )
  images = np.moveaxis(images.reshape(SIZE, SIZE, 3, -1), -1, 0)
  if len(images) != len(labels):
    raise UserError(
      f'{path}: {len(images):,} images in X but {len(labels):,} labels in y.'
    )
  check_labels(labels, lowest, highest, path)
  return images, labels.astype(np.int64) % 10


def generate(images: np.ndarray, labels: np.ndarray) -> Examples:
  """Yields examples from arrays, keyed by position."""
  for index, (image, label) in enumerate(zip(images, labels, strict=True)):
    yield f'{index:06d}', {'image': image, 'label': int(label)}
