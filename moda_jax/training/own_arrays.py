"""Arrays as people have them, brought to what domains are made of."""

import logging
import os
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from moda_jax.data.new_inputs import to_image
from moda_jax.data.pictures import PictureFiles, UnequalImages
from moda_jax.errors import UserError

_log = logging.getLogger(__name__)


def to_plain(data: Any, target: Any) -> tuple[Any, Any]:
  """Returns domains and target with plain arrays and names without dots.

  What is not a domain at all is left as it is, for its own refusal.

  Args:
    data: from name to images and labels.
    target: the name of the target.
  """
  if not isinstance(data, Mapping):
    return data, target
  names = {name: _without_dots(name) for name in data}
  if len(set(names.values())) < len(names):
    raise UserError(
      f"the names of domains differ in '.' and '_' alone: {', '.join(names)}."
    )
  plain = {}
  for name, pair in data.items():
    if isinstance(pair, tuple | list) and len(pair) == 2:
      images, labels = pair
      pair = (
        _to_images(images, name),
        _to_labels(labels, name),
      )
    plain[names[name]] = pair
  is_known = isinstance(target, str) and target in names
  return plain, names[target] if is_known else target


def _without_dots(name: Any) -> Any:
  """Returns a name that a config can have: dots separate its sections."""
  if not isinstance(name, str) or '.' not in name:
    return name
  plain = name.replace('.', '_')
  _log.info("the domain '%s' is called '%s'", name, plain)
  return plain


def _to_images(images: Any, name: str) -> Any:
  """Returns a list of paths, or of images that differ in size, as pictures."""
  if not isinstance(images, list | tuple) or not images:
    return images
  are_paths = [isinstance(image, str | os.PathLike) for image in images]
  if all(are_paths):
    return PictureFiles([pathlib.Path(image) for image in images])
  try:
    shapes = {np.shape(image) for image in images}
    if len(shapes) == 1 and not any(are_paths):
      return images
    return UnequalImages([to_image(image) for image in images])
  except (UserError, ValueError) as error:
    raise UserError(f"the domain '{name}': {error}") from error


def _to_labels(labels: Any, name: str) -> Any:
  """Returns labels as numbers or text where pandas has objects."""
  if labels is None:
    return None
  try:
    array = np.asarray(labels)
  except ValueError as error:
    raise UserError(f"the domain '{name}': labels: {error}") from error
  if array.dtype.kind == 'T':  # NumPy's own text of any length
    return array.astype(str)
  if array.dtype.kind != 'O':
    return array
  values = array.tolist()
  if all(isinstance(value, str) for value in values):
    return array.astype(str)
  if all(type(value) is int for value in values):
    return array.astype(np.int64)
  odd = next(v for v in values if not isinstance(v, str) and type(v) is not int)
  raise UserError(
    f"the domain '{name}': a label is {odd!r}; names or whole numbers are "
    'needed for every example, or None in place of all labels.'
  )
