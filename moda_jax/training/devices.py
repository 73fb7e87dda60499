"""Devices: how many there are, and what each of them holds.

One device runs compiled functions by `jit`, several by `pmap`, and those of
several processes by `jit` of `shard_map`. Batches are split over the devices
along their examples; everything else is replicated. A number of devices is that
of all processes together; each has the same share of it, and of a batch.
"""

import collections
import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils

from moda_jax.data.spec import Part
from moda_jax.errors import UserError

_log = logging.getLogger(__name__)
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


def count_devices() -> int:
  """Returns how many devices there are, the same number in each process."""
  own = collections.Counter(device.process_index for device in jax.devices())
  return min(own.values()) * len(own)


def choose_devices(batch_size: int, wanted: int = 0) -> int:
  """Returns how many devices share a batch in training.

  Args:
    batch_size: what they must divide.
    wanted: so many exactly; 0 takes as many as divide the batch.
  """
  there, processes = count_devices(), jax.process_count()
  if wanted:
    _check_wanted(batch_size, wanted, there)
    return wanted
  for devices in range(there, 0, -processes):
    if batch_size % devices == 0:
      break
  else:
    raise UserError(
      f'config.data.batch_size = {batch_size} is not divisible by the number '
      f'of processes, {processes}.'
    )
  if devices < there:
    _log.warning(
      'training on %d of %d devices: more do not divide batch_size = %d',
      devices,
      there,
      batch_size,
    )
  return devices


def _check_wanted(batch_size: int, wanted: int, there: int) -> None:
  processes = jax.process_count()
  if wanted > there or wanted % processes:
    shared = f', in {processes} processes alike' if processes > 1 else ''
    raise UserError(
      f'config.run.devices = {wanted}: there are {there}{shared}; 0 takes as '
      'many as divide the batch.'
    )
  if batch_size % wanted:
    raise UserError(
      f'config.data.batch_size = {batch_size} is not divisible by the number '
      f'of devices, {wanted}; config.run.devices = 0 takes as many as divide '
      'it.'
    )


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
  text = f'{devices} × {kind.upper() if kind == "cpu" else kind}'
  processes = jax.process_count()
  return f'{text} in {processes} processes' if processes > 1 else text


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
  if jax.process_count() > 1:
    return _compile_for_processes(step_fn, devices, donated)
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


def _compile_for_processes(
  step_fn: Callable[..., Any], devices: int, donated: tuple[int, ...]
) -> Callable[..., Any]:
  """Compiles what `pmap` does, on the devices of all processes."""

  def step_of_one(state: Any, batch: Any) -> Any:
    return step_fn(state, jax.tree.map(lambda x: x[0], batch))

  return jax.jit(
    jax.shard_map(
      step_of_one,
      mesh=_mesh(devices),
      in_specs=(jax.P(), jax.P(AXIS)),
      out_specs=jax.P(),
      check_vma=False,  # as in pmap: sums over devices are the methods' own
    ),
    donate_argnums=donated,
  )


def replicate(tree: Any, devices: int) -> Any:
  """Places arrays where a compiled step leaves them.

  Otherwise its second call would be compiled again. In several processes,
  all of which must call this, all get the first one's values.
  """
  if jax.process_count() > 1:
    shared = multihost_utils.broadcast_one_to_all(tree)
    _connect(devices)
    copies = everywhere(devices)
    return jax.tree.map(
      lambda x: jax.make_array_from_process_local_data(copies, x, x.shape),
      shared,
    )
  if devices == 1:
    return tree
  return jax.device_put(tree, everywhere(devices))


def _connect(devices: int) -> None:
  """Connects the devices now that the processes are at the same place.

  On CPUs they have half a minute for that, and compiling may keep some of the
  processes longer than others.
  """
  ones = put_on_devices(np.ones(own_devices(devices)), devices)
  total = compile_step(lambda _, x: jax.lax.psum(x, AXIS), devices)(0, ones)
  assert float(total) == devices


def bring_home(tree: Any) -> Any:
  """Returns replicated arrays as one process alone can use them."""
  return tree if jax.process_count() == 1 else jax.device_get(tree)


def own_part(batch_size: int) -> Part | None:
  """Returns what this process makes of every batch; None for all of it."""
  processes = jax.process_count()
  if processes == 1:
    return None
  share = batch_size // processes
  start = share * jax.process_index()
  return Part(start, start + share, batch_size)


def own_devices(devices: int) -> int:
  """Returns how many of the devices are this process's."""
  return devices // jax.process_count()


def split_over_devices(
  batch: Batch, devices: int, stacked: bool = False
) -> Batch:
  """Puts an axis of devices in front of every array, B split over it.

  Args:
    batch: as NumPy arrays.
    devices: how many of this process; they divide B.
    stacked: whether the batch is one of `make_stacked_batch_fn`.
  """

  def split(x: np.ndarray, axis: int) -> np.ndarray:
    shape = (*x.shape[:axis], devices, -1, *x.shape[axis + 1 :])
    return np.moveaxis(x.reshape(shape), axis, 0)

  return {
    group: {k: split(x, stacked + (group == 'source')) for k, x in own.items()}
    for group, own in batch.items()
  }


def prefetch_to_device(
  batches: Iterable[Batch],
  devices: int,
  stacked: bool = False,
  ahead: int = STEPS_UNDER_WAY,
) -> Iterator[Any]:
  """Yields the batches on the devices, transfers begun `ahead` early.

  Args:
    batches: of the examples that are this process's.
    devices: how many share a batch.
    stacked: see `split_over_devices`.
    ahead: how many batches.
  """
  queue: collections.deque[Any] = collections.deque()
  for batch in batches:
    if devices > 1:
      batch = split_over_devices(batch, own_devices(devices), stacked)
    queue.append(put_on_devices(batch, devices))
    if len(queue) > ahead:
      yield queue.popleft()
  yield from queue


def put_on_devices(tree: Any, devices: int) -> Any:
  """Puts arrays on the devices, an entry of their first axis on each.

  Args:
    tree: of arrays, with an entry for each device of this process; on a single
      device there is no such axis.
    devices: how many, over all processes.
  """
  if devices == 1:
    return jax.device_put(tree)
  sharding = _sharding(devices, jax.P(AXIS))
  if jax.process_count() == 1:
    return jax.device_put(tree, sharding)
  return jax.tree.map(
    lambda x: jax.make_array_from_process_local_data(sharding, x), tree
  )


def finish_in_turn(results: Iterable[Any]) -> Iterator[Any]:
  """Yields results of compiled calls once finished, few calls under way."""
  queue: collections.deque[Any] = collections.deque()
  for result in results:
    queue.append(result)
    if len(queue) > STEPS_UNDER_WAY:
      yield jax.block_until_ready(queue.popleft())
  yield from queue


def everywhere(devices: int) -> jax.sharding.NamedSharding:
  """Returns where arrays are that every device has a copy of."""
  return _sharding(devices, jax.P())


def _sharding(
  devices: int, axes: jax.sharding.PartitionSpec
) -> jax.sharding.NamedSharding:
  return jax.sharding.NamedSharding(_mesh(devices), axes)


def _mesh(devices: int) -> jax.sharding.Mesh:
  """Returns the first devices of each process, process after process."""
  own: dict[int, list[jax.Device]] = collections.defaultdict(list)
  for device in jax.devices():
    own[device.process_index].append(device)
  chosen = [own[i][: own_devices(devices)] for i in sorted(own)]
  return jax.sharding.Mesh(np.concatenate(chosen), (AXIS,))
