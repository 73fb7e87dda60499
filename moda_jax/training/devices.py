"""Devices: how many there are, and what each of them holds.

One device runs compiled functions by `jit`, several by `pmap`. Batches are
split over the devices along their examples; everything else is replicated.
"""

import collections
import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import numpy as np

from moda_jax.errors import UserError

AXIS = 'devices'  # the mapped axis
STEPS_UNDER_WAY = 2  # dispatched, not finished: enough to hide dispatch
Batch = dict[str, dict[str, Any]]


def check_devices() -> None:
  """Refuses a platform that is asked for and not there."""
  try:
    jax.local_devices()
  except (RuntimeError, AssertionError) as error:  # both, by what is installed
    # JAX makes the attributes of its config when it starts.
    wanted = jax.config.jax_platforms  # type: ignore[attr-defined]
    reason = f': {error}' if str(error) else ''
    raise UserError(
      f'JAX_PLATFORMS={wanted}: JAX finds no such device here{reason}. Unset '
      'it to take what is there, or install JAX for that device.'
    ) from error


def count_devices(batch_size: int, wanted: int | None = None) -> int:
  """Returns how many devices share a batch: `wanted`, or all there are."""
  devices = wanted or jax.local_device_count()
  if batch_size % devices:
    raise UserError(
      f'config.data.batch_size = {batch_size} is not divisible by the number '
      f'of devices, {devices}.'
    )
  return devices


def hide_from_tensorflow() -> None:
  """Leaves accelerators to JAX: TensorFlow would take all their memory."""
  import tensorflow as tf  # takes a while to import

  for kind in ('GPU', 'TPU'):
    # Devices that a notebook has used before cannot be hidden any more.
    with contextlib.suppress(RuntimeError):
      tf.config.set_visible_devices([], kind)


def describe_devices(devices: int) -> str:
  """Names the devices in use, such as `4 × NVIDIA A100`."""
  kind = jax.local_devices()[0].device_kind
  return f'{devices} × {kind.upper() if kind == "cpu" else kind}'


def axis_name(devices: int) -> str | None:
  """Returns the name of the mapped axis; None on a single device."""
  return AXIS if devices > 1 else None


def compile_step(
  step_fn: Callable[..., Any], devices: int, donate_state: bool = False
) -> Callable[..., Any]:
  """Compiles `step_fn(state, batch)` for one device or several.

  On several, every array of the batch has the devices as its first axis; the
  state has not, nor have the results, which must be equal on all devices.

  Args:
    step_fn: the pure function.
    devices: how many to use.
    donate_state: whether the memory of the state given is reused; the caller
      must then not look at it again.
  """
  donated = (0,) if donate_state else ()
  if devices == 1:
    return jax.jit(step_fn, donate_argnums=donated)
  return jax.pmap(
    step_fn,
    AXIS,
    in_axes=(None, 0),
    out_axes=None,
    donate_argnums=donated,
    devices=jax.local_devices()[:devices],
  )


def replicate(tree: Any, devices: int) -> Any:
  """Places arrays where a compiled step leaves them.

  Otherwise its second call would be compiled again.
  """
  if devices == 1:
    return tree
  return jax.device_put(tree, _sharding(devices, jax.P()))


def split_over_devices(
  batch: Batch, devices: int, stacked: bool = False
) -> Batch:
  """Puts an axis of devices in front of every array, B split over it.

  Args:
    batch: as NumPy arrays.
    devices: how many; they divide B.
    stacked: whether the batch is one of `make_stacked_batch_fn`.
  """

  def split(x: np.ndarray, axis: int) -> np.ndarray:
    shape = (*x.shape[:axis], devices, -1, *x.shape[axis + 1 :])
    return np.moveaxis(x.reshape(shape), axis, 0)

  return {
    'source': {k: split(x, stacked + 1) for k, x in batch['source'].items()},
    'target': {k: split(x, int(stacked)) for k, x in batch['target'].items()},
  }


def prefetch_to_device(
  batches: Iterable[Batch],
  devices: int,
  stacked: bool = False,
  ahead: int = STEPS_UNDER_WAY,
) -> Iterator[Any]:
  """Yields the batches on the devices, transfers begun `ahead` early."""
  split = _sharding(devices, jax.P(AXIS)) if devices > 1 else None
  queue: collections.deque[Any] = collections.deque()
  for batch in batches:
    if devices > 1:
      batch = split_over_devices(batch, devices, stacked)
    queue.append(jax.device_put(batch, split))
    if len(queue) > ahead:
      yield queue.popleft()
  yield from queue


def finish_in_turn(results: Iterable[Any]) -> Iterator[Any]:
  """Yields results of compiled calls once finished, few calls under way."""
  queue: collections.deque[Any] = collections.deque()
  for result in results:
    queue.append(result)
    if len(queue) > STEPS_UNDER_WAY:
      yield jax.block_until_ready(queue.popleft())
  yield from queue


def _sharding(
  devices: int, axes: jax.sharding.PartitionSpec
) -> jax.sharding.NamedSharding:
  mesh = jax.sharding.Mesh(np.array(jax.local_devices()[:devices]), (AXIS,))
  return jax.sharding.NamedSharding(mesh, axes)
