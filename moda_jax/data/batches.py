"""Batches: a pure function of (seed, step), made by tf.data on the host.

A batch is `{'source': {'weak': [M, B, …], 'label': [M, B]}, 'target': {view:
[B, …]}}` with the views that the method declares and nothing else.
"""

import collections
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import jax
import ml_collections
import numpy as np
import scipy.sparse
import tensorflow as tf

from moda_jax.data import permutations, randaugment, seeds, weak
from moda_jax.data.domains import Domain, Domains
from moda_jax.objectives import Method

_MADE_AHEAD = 4  # batches, beside those on their way to the device
Batch = dict[str, dict[str, Any]]
BatchFn = Callable[[tf.Tensor], Batch]
_GatherFn = Callable[[tf.Tensor], tf.Tensor]


def make_batch_fn(
  domains: Domains, method: type[Method], config: ml_collections.ConfigDict
) -> BatchFn:
  """Returns the function from a step (int64 scalar) to its batch."""
  return _make_batch_fn(domains, method, config, _make_gather_fn)


def make_stacked_batch_fn(
  domains: Sequence[Domains],
  method: type[Method],
  configs: Sequence[ml_collections.ConfigDict],
) -> BatchFn:
  """Returns the same for several runs, the first axis of every array theirs.

  A single run's is not stacked.

  Args:
    domains: of each run; what is the same array is held in memory once.
    method: of all runs.
    configs: of each run, different in the seed alone.
  """
  if len(configs) == 1:
    return make_batch_fn(domains[0], method, configs[0])
  held = {}  # by the identity of what was copied

  def make_gather_fn(inputs: Any) -> _GatherFn:
    if id(inputs) not in held:
      held[id(inputs)] = _make_gather_fn(inputs)
    return held[id(inputs)]

  batch_fns = [
    _make_batch_fn(own, method, config, make_gather_fn)
    for own, config in zip(domains, configs, strict=True)
  ]

  def batch_fn(step: tf.Tensor) -> Batch:
    made = [own(step) for own in batch_fns]
    return tf.nest.map_structure(lambda *arrays: tf.stack(arrays), *made)

  return batch_fn


def _make_batch_fn(
  domains: Domains,
  method: type[Method],
  config: ml_collections.ConfigDict,
  make_gather_fn: Callable[[Any], _GatherFn],
) -> BatchFn:
  views = Views(config, augment_weak='strong' in method.views)
  sources = domains.sources if method.reads_sources else ()
  pick_source = [
    _make_pick_fn(domain, config, make_gather_fn(domain.inputs))
    for domain in sources
  ]
  target_gather_fn = make_gather_fn(domains.target.inputs)
  pick_target = _make_pick_fn(domains.target, config, target_gather_fn)

  def batch_fn(step: tf.Tensor) -> Batch:
    picked = [pick(step) for pick in pick_source]
    inputs = [x for x, _ in picked]
    source, target = {}, {}
    if picked:
      source['label'] = tf.stack([label for _, label in picked])
    if method.views or method.reads_target_labels:
      target_inputs, target_label = pick_target(step)
      if method.reads_target_labels:
        target['label'] = target_label
    if method.views:
      inputs.append(target_inputs)
    weak_views = views.weak(tf.stack(inputs), step)
    if picked:
      source['weak'] = weak_views[: len(picked)]
    if 'weak' in method.views:
      target['weak'] = weak_views[-1]
    if 'strong' in method.views:
      target['strong'] = views.strong(weak_views[-1], step)
    return {'source': source, 'target': target}

  return batch_fn


def _make_pick_fn(
  domain: Domain, config: ml_collections.ConfigDict, gather: _GatherFn
) -> Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]:
  seed = seeds.stream(config.seed, f'order of {domain.name}')
  unknown = np.full(domain.size, -1, np.int32)
  labels = tf.constant(unknown if domain.labels is None else domain.labels)

  def pick(step: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    indices = permutations.batch_indices(
      seed, step, config.batch_size, domain.size
    )
    return gather(indices), tf.gather(labels, indices)

  return pick


def _make_gather_fn(inputs: Any) -> _GatherFn:
  """From places to the inputs there; sparse rows become dense only here."""
  if not scipy.sparse.issparse(inputs):
    held = tf.constant(inputs)
    return lambda places: tf.gather(held, places)
  splits = tf.constant(inputs.indptr, tf.int64)
  columns = tf.constant(inputs.indices, tf.int64)
  values = tf.constant(inputs.data)
  rows = tf.RaggedTensor.from_row_splits(tf.range(len(inputs.data)), splits)

  def gather(places: tf.Tensor) -> tf.Tensor:
    entries = tf.gather(rows, places)  # [B, (entries of the row)]
    at = tf.stack(
      [entries.value_rowids(), tf.gather(columns, entries.values)], axis=1
    )
    shape = tf.stack([tf.shape(places)[0], inputs.shape[1]])
    values_there = tf.gather(values, entries.values)
    return tf.scatter_nd(at, values_there, tf.cast(shape, tf.int64))

  return gather


class Views:
  """The weak and the strong view of images at a step."""

  def __init__(self, config: ml_collections.ConfigDict, augment_weak: bool):
    self._config = config
    self._augment_weak = {'always': True, 'never': False}.get(
      config.weak, augment_weak
    )
    self._weak_seed = seeds.stream(config.seed, 'weak view')
    self._strong_seed = seeds.stream(config.seed, 'strong view')
    self._magnitude_seed = seeds.stream(config.seed, 'magnitude')

  def weak(self, images: tf.Tensor, step: tf.Tensor) -> tf.Tensor:
    """The weak view of `[D, B, H, W, 3]`, one draw an image."""
    config = self._config
    if not _are_images(images) or not (self._augment_weak or config.weak_flip):
      return images
    shape = tf.shape(images)
    view = weak.weak_view(
      tf.reshape(images, tf.concat([[-1], shape[2:]], 0)),  # [D·B, H, W, 3]
      seeds.fold_in(self._weak_seed, step),
      rotation=config.weak_rotation if self._augment_weak else 0.0,
      translation=config.weak_translation if self._augment_weak else 0.0,
      flip=config.weak_flip,
    )
    return tf.reshape(view, shape)

  def strong(self, images: tf.Tensor, step: tf.Tensor) -> tf.Tensor:
    """RandAugment of `[B, H, W, 3]`, one magnitude for the mini-batch.

    Features that are no images come as they are: for them the strong view is
    made within the network, see `Networks.has_dropout`.
    """
    if not _are_images(images):
      return images
    config = self._config
    magnitude = randaugment.draw_magnitude(
      seeds.fold_in(self._magnitude_seed, step),
      config.randaugment_min,
      config.randaugment_max,
    )
    return randaugment.randaugment(
      images,
      seeds.fold_in(self._strong_seed, step),
      n=config.randaugment_n,
      magnitude=magnitude,
      exclude=tuple(config.randaugment_exclude),
      cutout=config.cutout,
    )


def _are_images(inputs: tf.Tensor) -> bool:
  return inputs.dtype == tf.uint8


def make_batches(batch_fn: BatchFn, start: int, stop: int) -> Iterator[Batch]:
  """Yields the NumPy batches of steps `start` to `stop` − 1, made ahead."""
  options = tf.data.Options()
  # Its thread sleeps for up to a minute, and the end of a run waits for it.
  options.autotune.enabled = False
  dataset = tf.data.Dataset.range(start, stop).with_options(options)
  dataset = dataset.map(
    batch_fn, num_parallel_calls=os.cpu_count(), deterministic=True
  )
  return dataset.prefetch(_MADE_AHEAD).as_numpy_iterator()


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
  ahead: int = 2,
) -> Iterator[Any]:
  """Yields the batches on the devices, transfers begun `ahead` early."""
  split = over_devices(devices, split=True)
  queue = collections.deque()
  for batch in batches:
    if devices > 1:
      batch = split_over_devices(batch, devices, stacked)
    queue.append(jax.device_put(batch, split if devices > 1 else None))
    if len(queue) > ahead:
      yield queue.popleft()
  yield from queue


def over_devices(devices: int, *, split: bool) -> jax.sharding.NamedSharding:
  """Arrays split along their first axis over the devices, or whole on each."""
  mesh = jax.sharding.Mesh(jax.local_devices()[:devices], ('devices',))
  axes = jax.P('devices') if split else jax.P()
  return jax.sharding.NamedSharding(mesh, axes)


def epoch_steps(domains: Domains, method: type[Method], batch_size: int) -> int:
  """Steps an epoch: as many as the largest domain that is read needs."""
  read = list(domains.sources) if method.reads_sources else []
  if method.views or method.reads_target_labels:
    read.append(domains.target)
  return -(-max(domain.size for domain in read) // batch_size)
