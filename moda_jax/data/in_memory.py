"""Domains from arrays in memory."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from moda_jax.data.domains import Domain, Domains
from moda_jax.data.read_tfds import conform
from moda_jax.errors import UserError

Arrays = tuple[Any, Any]  # images and labels


def make_domains(data: Mapping[str, Arrays], target: str) -> Domains:
  """Makes the domains of `{name: (images, labels)}`.

  The target is evaluated on its own examples; its labels may be None. See
  `make_domain` for what images and labels may be.
  """
  if target not in data or len(data) < 2:
    raise UserError(
      f"target='{target}' must be one of the domains, and another one must be "
      f'there as source; there are {", ".join(data) or "none"}.'
    )
  made = {name: make_domain(name, *pair) for name, pair in data.items()}
  sources = tuple(domain for name, domain in made.items() if name != target)
  return Domains(sources, made[target], made[target])


def make_domain(
  name: str,
  images: Any,
  labels: Any = None,
  classes: Sequence[str] | None = None,
  origin: str = 'memory',
) -> Domain:
  """Makes a domain of arrays, checked.

  Args:
    name: the domain's name.
    images: `[N, H, W]`, `[N, H, W, 1]` or `[N, H, W, 3]`, bytes or floats in
      0..1; 28 × 28 is padded to 32 × 32 like MNIST.
    labels: `[N]` names, or whole numbers: places in `classes`, or themselves
      the names where there are none. None where they are not known.
    classes: the class names.
    origin: where they come from.
  """
  inputs = _check_images(np.asarray(images), f'{origin}, {name}')
  if labels is None:
    return Domain(name, origin, inputs, None, ())
  labels = np.asarray(labels)
  if labels.shape != inputs.shape[:1]:
    raise UserError(
      f'{origin}, {name}: labels of shape {labels.shape} for {len(inputs)} '
      'images; one label an image is needed.'
    )
  names, places = _name_classes(labels, classes, f'{origin}, {name}')
  return Domain(name, origin, inputs, places.astype(np.int32), names)


def _check_images(images: np.ndarray, where: str) -> np.ndarray:
  if images.ndim == 3:
    images = images[..., None]
  if images.ndim != 4 or images.shape[-1] not in (1, 3):
    raise UserError(
      f'{where}: images of shape {images.shape}; [N, H, W], [N, H, W, 1] or '
      '[N, H, W, 3] is needed.'
    )
  if 0 in images.shape:
    raise UserError(
      f'{where}: images of shape {images.shape}; at least one image of at '
      'least one pixel is needed.'
    )
  if images.dtype.kind == 'f':
    if not (
      np.isfinite(images).all() and 0 <= images.min() <= images.max() <= 1
    ):
      raise UserError(f'{where}: images as floats must lie within 0..1.')
    images = np.round(255 * images).astype(np.uint8)
  if images.dtype != np.uint8:
    raise UserError(
      f'{where}: images of type {images.dtype}; uint8, or floats in 0..1, are '
      'needed.'
    )
  return conform(images)


def _name_classes(
  labels: np.ndarray, classes: Sequence[str] | None, where: str
) -> tuple[tuple[str, ...], np.ndarray]:
  """The class names and the labels as places in them."""
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
