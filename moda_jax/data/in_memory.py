"""Domains from arrays in memory."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from moda_jax.data.domains import Domain, Domains
from moda_jax.data.images import to_bytes, to_rgb
from moda_jax.data.pictures import UnsizedPictures
from moda_jax.data.rows import are_rows, check_rows
from moda_jax.errors import UserError

Arrays = tuple[Any, Any]  # inputs and labels


def make_domains(data: Mapping[str, Arrays], target: str) -> Domains:
  """Makes domains from `{name: (inputs, labels)}`.

  The target is evaluated on its own examples; its labels may be None. See
  `make_domain` for what inputs and labels may be.
  """
  if not isinstance(data, Mapping):
    raise UserError(
      f'data of type {type(data).__name__}; a mapping from the names of '
      'domains to (images, labels) is needed.'
    )
  for name, pair in data.items():
    if not isinstance(name, str) or not name or set(name) & set('.,'):
      raise UserError(
        f"{name!r} cannot name a domain; a string without '.' and ',' is "
        'needed.'
      )
    if not isinstance(pair, tuple | list) or len(pair) != 2:
      raise UserError(f"the domain '{name}' must be (images, labels).")
  if not isinstance(target, str) or target not in data or len(data) < 2:
    raise UserError(
      f"target='{target}' must be one of the domains, and another is needed "
      f'as source; there are {", ".join(data) or "none"}.'
    )
  made = {name: make_domain(name, *pair) for name, pair in data.items()}
  sources = tuple(domain for name, domain in made.items() if name != target)
  return Domains(sources, made[target], made[target])


def make_domain(
  name: str,
  inputs: Any,
  labels: Any = None,
  classes: Sequence[str] | np.ndarray | None = None,
  origin: str = 'memory',
) -> Domain:
  """Makes a domain from arrays, which are checked.

  Args:
    name: the domain's name.
    inputs: images, `[N, H, W]`, `[N, H, W, 1]` or `[N, H, W, 3]`, bytes or
      floats in 0..1; pictures that differ in size; or rows of features
      `[N, F]`, dense or sparse.
    labels: `[N]` names, or whole numbers: indices into `classes`, or without
      `classes` the names themselves. None where they are not known.
    classes: the class names.
    origin: where they come from.
  """
  inputs = _check_inputs(inputs, f'{origin}, {name}')
  if labels is None:
    return Domain(name, origin, inputs, None, ())
  labels = np.asarray(labels)
  if labels.shape != inputs.shape[:1]:
    raise UserError(
      f'{origin}, {name}: labels of shape {labels.shape} for '
      f'{inputs.shape[0]} examples; one label per example is needed.'
    )
  names, places = _name_classes(labels, classes, f'{origin}, {name}')
  return Domain(name, origin, inputs, places.astype(np.int32), names)


def _check_inputs(inputs: Any, where: str) -> Any:
  if isinstance(inputs, UnsizedPictures):
    return inputs
  if not are_rows(inputs):
    return _check_images(np.asarray(inputs), where)
  return check_rows(inputs, f'{where}: rows of features')


def _check_images(images: np.ndarray, where: str) -> np.ndarray:
  if images.ndim == 3:
    images = images[..., None]
  if images.ndim != 4 or images.shape[-1] not in (1, 3):
    raise UserError(
      f'{where}: images of shape {images.shape}; [N, H, W], [N, H, W, 1] or '
      '[N, H, W, 3] is needed, or rows of features [N, F].'
    )
  if 0 in images.shape:
    raise UserError(
      f'{where}: images of shape {images.shape}; at least one image of at '
      'least one pixel is needed.'
    )
  return to_rgb(to_bytes(images, f'{where}: images'))


def _name_classes(
  labels: np.ndarray, classes: Sequence[str] | np.ndarray | None, where: str
) -> tuple[tuple[str, ...], np.ndarray]:
  """Returns the class names and the labels as indices into them."""
  if labels.dtype.kind not in 'uibU':
    raise UserError(
      f'{where}: labels of type {labels.dtype}; whole numbers or names are '
      'needed.'
    )
  if classes is not None and np.ndim(classes) != 1:
    raise UserError(
      f'{where}: classes of shape {np.shape(classes)}; a list of names is '
      'needed.'
    )
  if classes is None and labels.dtype.kind == 'i' and (labels < 0).any():
    raise UserError(
      f'{where}: {(labels < 0).sum()} labels are negative, such as '
      f'{labels.min()}. If that marks a label that is not known, leave those '
      'examples out, or give None for the whole target; if it is a class, give '
      'names: labels.astype(str).'
    )
  if classes is None or labels.dtype.kind == 'U':
    names, places = np.unique(labels, return_inverse=True)
    return tuple(str(name) for name in names), places
  wrong = labels[(labels < 0) | (labels >= len(classes))]
  if len(wrong):
    raise UserError(
      f'{where}: {len(wrong)} labels like {wrong[0]} for {len(classes)} '
      f'classes; 0 to {len(classes) - 1} are allowed.'
    )
  return tuple(str(name) for name in classes), labels
