"""Inputs prepared for a network: images of one size, words weighted."""

from collections.abc import Callable, Sequence
from typing import Any

import ml_collections
import numpy as np
import scipy.sparse

from moda_jax.data.domains import Domain, Domains, map_domains
from moda_jax.data.images import resize
from moda_jax.data.rows import are_rows
from moda_jax.errors import UserError


def prepare_inputs(
  domains: Domains, data: ml_collections.ConfigDict
) -> Domains:
  """Brings images to `data.image_size`, counts of words to `data.features`."""
  training = (*domains.sources, domains.target)
  if are_rows(domains.target.inputs) or data.features == 'tfidf':
    _check_columns(training, data.features)
    if data.features == 'counts':
      return domains
    idf = inverse_document_frequency([d.inputs for d in training])
    return _map_inputs(domains, lambda x: weight_by_tfidf(x, idf))
  if data.image_size:
    domains = _map_inputs(domains, lambda x: _resize(x, data.image_size))
  sizes = {
    d.name: d.inputs.shape[1:3] for d in (*domains.sources, domains.target)
  }
  if len(set(sizes.values())) > 1:
    listed = ', '.join(f'{name} {h}×{w}' for name, (h, w) in sizes.items())
    raise UserError(
      f'The images of the domains differ in size ({listed}): set '
      'config.data.image_size to bring them to one size.'
    )
  return domains


def _check_columns(training: Sequence[Domain], features: str) -> None:
  """Refuses rows beside images, rows that differ in length, dense counts."""
  shapes = {d.name: d.inputs.shape[1:] for d in training}
  if len(set(shapes.values())) > 1:
    listed = ', '.join(f'{name} {shape}' for name, shape in shapes.items())
    raise UserError(
      f'The examples of the domains differ in shape ({listed}); all must be '
      'rows of as many features, or all images.'
    )
  if features == 'tfidf' and not scipy.sparse.issparse(training[0].inputs):
    raise UserError(
      "config.data.features = 'tfidf' is for sparse counts of words; the "
      f"examples of '{training[0].name}' are not sparse: leave it at 'counts', "
      'which takes them as they are.'
    )


def inverse_document_frequency(
  training: Sequence[scipy.sparse.csr_array],
) -> np.ndarray:
  """Returns ln((1 + n) / (1 + df)) + 1 of each feature of training samples."""
  samples = sum(counts.shape[0] for counts in training)
  frequency = sum((counts > 0).sum(axis=0) for counts in training)
  return (np.log((1 + samples) / (1 + frequency)) + 1).astype(np.float32)


def weight_by_tfidf(
  counts: scipy.sparse.csr_array, idf: np.ndarray
) -> scipy.sparse.csr_array:
  """Returns counts times `idf`, with each row then scaled to length 1."""
  weighted = counts.multiply(idf[None]).tocsr()
  lengths = np.sqrt(weighted.multiply(weighted).sum(axis=1))
  return weighted.multiply(1 / np.maximum(lengths, 1e-12)[:, None]).tocsr()


def _resize(images: np.ndarray, size: int) -> np.ndarray:
  if images.shape[1:3] == (size, size):
    return images
  return np.stack([resize(image, size) for image in images])


def _map_inputs(domains: Domains, make: Callable[[Any], Any]) -> Domains:
  return map_domains(domains, lambda d: d._replace(inputs=make(d.inputs)))
