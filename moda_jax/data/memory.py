"""Memory: whether pictures are held in it, and arrays held once."""

import logging
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import ml_collections
import numpy as np
import tensorflow as tf

from moda_jax.data.domains import Domain, Domains, map_domains
from moda_jax.data.pictures import UnequalImages, UnsizedPictures
from moda_jax.data.streamed import StreamedPictures
from moda_jax.errors import UserError

_log = logging.getLogger(__name__)
_SHARE = 0.5  # of what is free may be taken by pictures
_ALIGNMENT = 64  # bytes, without which TensorFlow copies
_GB = 1e9


def hold_or_stream(
  drawn: Sequence[Domains], data: ml_collections.ConfigDict
) -> list[Domains]:
  """Reads pictures into memory, or leaves them to be read step by step.

  What is in memory already stays there. `data.memory` says which; 'auto' holds
  pictures that take no more than half of the memory that is free.

  Args:
    drawn: the domains of each run; pictures that runs share are read once.
    data: the section of the config.
  """
  made: dict[int, Any] = {}  # by the identity of what was read
  unread = {
    id(d.inputs): d
    for domains in drawn
    for d in (*domains.sources, domains.target, domains.test, *domains.held)
    if isinstance(d.inputs, UnsizedPictures)
  }
  if not unread:
    return list(drawn)
  stream = _choose(list(unread.values()), data)

  def make(domain: Domain) -> Domain:
    key = id(domain.inputs)
    if key in unread and key not in made:
      pictures, size = domain.inputs, data.image_size
      streams = stream and not isinstance(pictures, UnequalImages)
      made[key] = StreamedPictures(pictures, size)
      if not streams:
        made[key] = made[key][:]
    return domain._replace(inputs=made.get(key, domain.inputs))

  return [map_domains(domains, make) for domains in drawn]


def _choose(unread: Sequence[Domain], data: ml_collections.ConfigDict) -> bool:
  """Says whether pictures are streamed, and tells the user why."""
  size = data.image_size
  if not size:
    raise UserError(
      f"config.data.image_size = 0: the pictures of '{unread[0].name}' may be "
      'of any size; set the one to bring them to.'
    )
  count = sum(domain.size for domain in unread)
  needed, budget = 3 * size**2 * count, _SHARE * free_memory()
  stream = data.memory == 'no' or (data.memory == 'auto' and needed > budget)
  _log.info(
    '%s pictures of %d × %d, %.1f GB, are %s (memory=%s; up to %.1f GB, half '
    'of what is free, would be held)',
    f'{count:,}',
    size,
    size,
    needed / _GB,
    'read from disk at every step' if stream else 'held in memory',
    data.memory,
    budget / _GB,
  )
  return stream


def free_memory() -> int:
  """Returns how many bytes this process may still take."""
  pages = os.sysconf('SC_PHYS_PAGES') // 2  # where the system says no more
  free = pages * os.sysconf('SC_PAGE_SIZE')
  statistics = _read('/proc/meminfo').split()
  if 'MemAvailable:' in statistics:
    free = 1024 * int(statistics[statistics.index('MemAvailable:') + 1])
  limit = _read('/sys/fs/cgroup/memory.max').strip()
  used = _read('/sys/fs/cgroup/memory.current').strip()
  if limit.isdigit() and used.isdigit():  # in a container
    free = min(free, max(0, int(limit) - int(used)))
  return free


def _read(path: str) -> str:
  try:
    return pathlib.Path(path).read_text()
  except OSError:
    return ''


def align(inputs: Any) -> Any:
  """Returns an array where `as_tensor` can share its memory."""
  if not isinstance(inputs, np.ndarray) or _is_aligned(inputs):
    return inputs
  buffer = np.empty(inputs.nbytes + _ALIGNMENT, np.uint8)
  start = -buffer.ctypes.data % _ALIGNMENT
  held = buffer[start : start + inputs.nbytes].view(inputs.dtype)
  held = held.reshape(inputs.shape)
  held[...] = inputs
  return held


def as_tensor(inputs: np.ndarray) -> tf.Tensor:
  """Returns a tensor that shares an aligned array's memory, or else copies."""
  if _is_aligned(inputs):
    return tf.experimental.dlpack.from_dlpack(inputs.__dlpack__())
  return tf.constant(inputs)


def _is_aligned(inputs: np.ndarray) -> bool:
  flags, address = inputs.flags, inputs.ctypes.data
  return bool(
    flags.c_contiguous and flags.writeable and address % _ALIGNMENT == 0
  )


def hold_once(domains: Sequence[Domains]) -> list[Domains]:
  """Returns the domains with inputs that batches need not copy once more.

  Args:
    domains: of each run; what runs share stays shared.
  """
  held: dict[int, Any] = {}  # by the identity of what was moved

  def move(inputs: Any) -> Any:
    return held.setdefault(id(inputs), align(inputs))

  def move_domain(domain: Domain) -> Domain:
    return domain._replace(inputs=move(domain.inputs), views=move(domain.views))

  return [map_domains(own, move_domain) for own in domains]
