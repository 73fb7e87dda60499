"""Arrays as people have them, brought to what domains are made of."""

import logging
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from moda_jax.data.new_inputs import prepare_new_inputs
from moda_jax.errors import UserError

_log = logging.getLogger(__name__)


def to_plain(data: Any, target: Any, image_size: int) -> tuple[Any, Any]:
  """Returns domains and target with plain arrays and names without dots.

  What is not a domain at all is left as it is, for its own refusal.

  Args:
    data: from name to images and labels.
    target: the name of the target.
    image_size: what images of different sizes are brought to.
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
        _to_images(images, image_size, name),
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


def _to_images(images: Any, size: int, name: str) -> Any:
  """Resizes images in a list that differ in shape, and reads paths."""
  if not isinstance(images, list | tuple) or not images:
    return images
  are_paths = isinstance(images[0], str | os.PathLike)
  if not are_paths and len({np.shape(image) for image in images}) == 1:
    return images
  if not size:
    raise UserError(
      f"the images of '{name}' differ in size, and image_size = 0; set the "
      'one to bring them to.'
    )
  try:
    return prepare_new_inputs(images, (size, size, 3))
  except UserError as error:
    raise UserError(f"the domain '{name}': {error}") from error


def _to_labels(labels: Any, name: str) -> Any:
  """Returns labels as numbers or text where pandas has objects."""
  if labels is None:
    return None
  array = np.asarray(labels)
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
