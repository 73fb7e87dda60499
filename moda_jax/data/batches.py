"""Batches: a pure function of (seed, step), made by tf.data on the host.

A batch is `{'source': {'weak': [M, B, …], 'label': [M, B]}, 'target': {view:
[B, …]}}` with the views that the method declares and nothing else.
"""

import collections
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import ml_collections
import numpy as np
import tensorflow as tf

from moda_jax.data import permutations, randaugment, seeds, weak
from moda_jax.data.domains import Domain, Domains
from moda_jax.objectives import Method

Batch = dict[str, dict[str, Any]]
BatchFn = Callable[[tf.Tensor], Batch]


def make_batch_fn(
  domains: Domains, method: type[Method], config: ml_collections.ConfigDict
) -> BatchFn:
  """Returns the function from a step (int64 scalar) to its batch."""
  views = _Views(config, augment_weak='strong' in method.views)
  sources = domains.sources if method.reads_sources else ()
  pick_source = [_make_pick_fn(domain, config) for domain in sources]
  pick_target = _make_pick_fn(domains.target, config)

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
  domain: Domain, config: ml_collections.ConfigDict
) -> Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]:
  seed = seeds.stream(config.seed, f'order of {domain.name}')
  inputs, labels = tf.constant(domain.inputs), tf.constant(domain.labels)

  def pick(step: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    indices = permutations.batch_indices(
      seed, step, config.batch_size, len(domain.labels)
    )
    return tf.gather(inputs, indices), tf.gather(labels, indices)

  return pick


class _Views:
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
    if not self._augment_weak and not config.weak_flip:
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
    """RandAugment of `[B, H, W, 3]`, one magnitude for the mini-batch."""
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


def make_batches(batch_fn: BatchFn, start: int, stop: int) -> Iterator[Batch]:
  """Yields the NumPy batches of steps `start` to `stop` − 1, made ahead."""
  dataset = tf.data.Dataset.range(start, stop)
  dataset = dataset.map(
    batch_fn, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
  )
  return dataset.prefetch(tf.data.AUTOTUNE).as_numpy_iterator()


def split_over_devices(batch: Batch, devices: int) -> Batch:
  """Puts an axis of devices in front of every array, B split over it."""

  def split(x: np.ndarray, axis: int) -> np.ndarray:
    shape = (*x.shape[:axis], devices, -1, *x.shape[axis + 1 :])
    return np.moveaxis(x.reshape(shape), axis, 0)

  return {
    'source': {k: split(x, 1) for k, x in batch['source'].items()},
    'target': {k: split(x, 0) for k, x in batch['target'].items()},
  }


def prefetch_to_device(
  batches: Iterable[Batch], devices: int, ahead: int = 2
) -> Iterator[Any]:
  """Yields the batches on the devices, transfers begun `ahead` early."""
  if devices > 1:
    mesh = jax.sharding.Mesh(jax.local_devices()[:devices], ('devices',))
    split = jax.sharding.NamedSharding(mesh, jax.P('devices'))
  queue = collections.deque()
  for batch in batches:
    if devices > 1:
      queue.append(jax.device_put(split_over_devices(batch, devices), split))
    else:
      queue.append(jax.device_put(batch))
    if len(queue) > ahead:
      yield queue.popleft()
  yield from queue


def epoch_steps(domains: Domains, batch_size: int) -> int:
  """Steps an epoch: as many as the largest domain needs."""
  largest = max(len(d.labels) for d in (*domains.sources, domains.target))
  return -(-largest // batch_size)
