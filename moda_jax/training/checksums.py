"""Checksums of a state's arrays: what was read is what was saved."""

import json
import zlib
from concurrent import futures
from typing import Any

import jax
import numpy as np


class Damaged(Exception):
  """What was read is not what was saved."""


def sum_arrays(tree: Any) -> dict[str, str]:
  """Returns type, shape and checksum of every array, by its path.

  CRC-32 finds every flipped bit and is computed at the speed of memory; it is
  not meant against forgery.
  """
  arrays = _flatten(jax.device_get(tree))
  with futures.ThreadPoolExecutor() as pool:  # zlib lets other threads run
    sums = pool.map(_sum_array, arrays.values())
    return {
      path: f'{_kind(array)} {summed}'
      for (path, array), summed in zip(arrays.items(), sums, strict=True)
    }


def describe_arrays(tree: Any) -> dict[str, str]:
  """Returns type and shape of every array, by its path."""
  return {path: _kind(x) for path, x in _flatten(tree).items()}


def _flatten(tree: Any) -> dict[str, Any]:
  leaves, _ = jax.tree.flatten_with_path(tree)
  return {
    jax.tree_util.keystr(path, simple=True, separator='/'): leaf
    for path, leaf in leaves
  }


def _kind(array: Any) -> str:
  return f'{array.dtype}[{",".join(str(size) for size in array.shape)}]'


def _sum_array(array: np.ndarray) -> str:
  data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
  return f'{zlib.crc32(data.data):08x}'


def sum_json(values: Any) -> str:
  """Returns the checksum of values that are written as JSON."""
  text = json.dumps(values, sort_keys=True)
  return f'{zlib.crc32(text.encode()):08x}'


def check_arrays(tree: Any, sums: dict[str, str]) -> None:
  """Raises `Damaged` for arrays that are not the ones summed.

  Args:
    tree: what was read, the whole or a part of it.
    sums: what `sum_arrays` returned for the whole.
  """
  for path, found in sum_arrays(tree).items():
    saved = sums.get(path, 'missing')
    if found == saved:
      continue
    kind, there = found.partition(' ')[0], saved.partition(' ')[0]
    if kind == there:
      raise Damaged(f'the checksum of {path} is wrong')
    raise Damaged(f'{path} was saved as {there} and read as {kind}')
