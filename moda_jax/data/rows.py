"""Rows of features, dense or sparse, checked."""

from typing import Any

import numpy as np
import scipy.sparse

from moda_jax.errors import UserError


def are_rows(inputs: Any) -> bool:
  """Returns whether inputs are rows of features `[N, F]`, not images."""
  return scipy.sparse.issparse(inputs) or np.ndim(inputs) == 2


def check_rows(inputs: Any, where: str) -> Any:
  """Returns rows `[N, F]` as float32, an array or a CSR matrix.

  Args:
    inputs: an array, what becomes one, or a sparse matrix of any kind.
    where: what they are called in messages.
  """
  if scipy.sparse.issparse(inputs):
    rows = scipy.sparse.csr_array(inputs)
    rows.sum_duplicates()
  else:
    rows = _to_array(inputs, where)
  if rows.dtype.kind not in 'buif':
    raise UserError(f'{where} of type {rows.dtype}; numbers are needed.')
  if rows.ndim != 2 or 0 in rows.shape:
    raise UserError(
      f'{where} of shape {rows.shape}; [N, features] is needed, at least one '
      'of each.'
    )
  with np.errstate(over='ignore'):  # what overflows is refused below
    rows = rows.astype(np.float32)
  values = rows.data if scipy.sparse.issparse(rows) else rows
  if not np.isfinite(values).all():
    raise UserError(
      f'{where} hold values that are not finite in float32; remove or replace '
      'them.'
    )
  return rows


def _to_array(inputs: Any, where: str) -> np.ndarray:
  try:
    return np.asarray(inputs)
  except (TypeError, ValueError) as error:
    raise UserError(f'{where} must be numbers: {error}.') from error


def take_rows(inputs: Any, chosen: Any) -> np.ndarray:
  """Returns some rows of an array or a sparse matrix, as an array."""
  rows = inputs[chosen]
  return rows.toarray() if scipy.sparse.issparse(rows) else rows


def from_csr_parts(parts: dict[str, np.ndarray], where: str) -> Any:
  """Returns the matrix of `scipy.sparse.save_npz`'s arrays, fully checked.

  Args:
    parts: `data`, `indices`, `indptr` and `shape`.
    where: what it is called in messages.
  """
  try:
    matrix = scipy.sparse.csr_array(
      (parts['data'], parts['indices'], parts['indptr']),
      shape=tuple(int(n) for n in parts['shape']),
    )
    matrix.check_format(full_check=True)
  except (ValueError, TypeError, OverflowError) as error:
    raise UserError(f'{where}: not a sparse matrix: {error}.') from error
  return matrix
