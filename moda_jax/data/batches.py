"""Batches: a pure function of (seed, step), made by tf.data on the host.

A batch is `{'source': {'weak': [M, B, …], 'label': [M, B]}, 'target': {view:
[B, …]}}` with what the `BatchSpec` declares and nothing else. Where the
magnitudes of strong views are learned, it is a function of their probabilities
too, and has images to learn them from in 'probe', see `Views.probe`.
"""

import atexit
import functools
import os
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Protocol

import ml_collections
import numpy as np
import scipy.sparse
import tensorflow as tf

from moda_jax.config import read_section
from moda_jax.data import permutations, seeds
from moda_jax.data.domains import Domain, Domains
from moda_jax.data.memory import as_tensor
from moda_jax.data.options import LEARNED, ViewOptions
from moda_jax.data.parts import draw_rows, take_part
from moda_jax.data.spec import BatchSpec, Part
from moda_jax.data.streamed import StreamedPictures
from moda_jax.data.views import Views, check_views
from moda_jax.errors import UserError

_MADE_AHEAD = 4  # batches, beside those on their way to the device
Batch = dict[str, dict[str, Any]]
_faults: list[UserError] = []  # of pictures that are read step by step
_unfinished: weakref.WeakSet[Generator] = weakref.WeakSet()
_GatherFn = Callable[[tf.Tensor], tf.Tensor]


class BatchFn(Protocol):
  """A function from a step (int64 scalar) to its batch, or to a part of it."""

  def __call__(
    self,
    step: tf.Tensor,
    part: Part | None = None,
    probabilities: Any = None,
  ) -> Batch:
    """Returns the rows of `part`, as they are in the whole batch.

    Args:
      step: from 0.
      part: the whole batch by default.
      probabilities: of magnitudes, where these are learned; uniform by default.
    """


def make_batch_fn(
  domains: Domains, spec: BatchSpec, config: ml_collections.ConfigDict
) -> BatchFn:
  """Returns the function from a step to its batch."""
  return _make_batch_fn(domains, spec, config, _make_gather_fn)


def make_stacked_batch_fn(
  domains: Sequence[Domains],
  spec: BatchSpec,
  configs: Sequence[ml_collections.ConfigDict],
) -> BatchFn:
  """Returns such a function for several runs, stacked along a first axis.

  The batches of a single run are not stacked.

  Args:
    domains: of each run; an array that several share is held in memory once.
    spec: what the batches carry.
    configs: of each run, different in the seed alone.
  """
  if len(configs) == 1:
    return make_batch_fn(domains[0], spec, configs[0])
  held = {}  # by the identity of what was copied

  def make_gather_fn(inputs: Any) -> _GatherFn:
    if id(inputs) not in held:
      held[id(inputs)] = _make_gather_fn(inputs)
    return held[id(inputs)]

  batch_fns = [
    _make_batch_fn(own, spec, config, make_gather_fn)
    for own, config in zip(domains, configs, strict=True)
  ]

  def batch_fn(
    step: tf.Tensor, part: Part | None = None, probabilities: Any = None
  ) -> Batch:
    each = [None] * len(configs) if probabilities is None else probabilities
    made = [own(step, part, p) for own, p in zip(batch_fns, each, strict=True)]
    return tf.nest.map_structure(lambda *arrays: tf.stack(arrays), *made)

  return batch_fn


def _make_batch_fn(
  domains: Domains,
  spec: BatchSpec,
  config: ml_collections.ConfigDict,
  make_gather_fn: Callable[[Any], _GatherFn],
) -> BatchFn:
  options = read_section(ViewOptions, config.views, 'views')
  check_views(options)
  views = Views(options, config.run.seed, augment_weak=spec.has_strong_view)
  sources = domains.sources if spec.sources else ()
  pick_source = [
    _make_pick_fn(domain, config, make_gather_fn) for domain in sources
  ]
  pick_target = _make_pick_fn(domains.target, config, make_gather_fn)

  learns = learns_views(options, spec)
  if learns and len(domains.target.inputs.shape) == 2:
    raise UserError(
      f"config.views.strong = '{LEARNED}' is for images; this data has rows of "
      'features.'
    )

  def batch_fn(
    step: tf.Tensor, part: Part | None = None, probabilities: Any = None
  ) -> Batch:
    picked = [pick(step, part) for pick in pick_source]
    inputs = [x for x, _ in picked]
    source, target = {}, {}
    if picked:
      source['label'] = tf.stack([label for _, label in picked])
    if spec.has_target:
      target_inputs, target_label = pick_target(step, part)
      if spec.target_labels:
        target['label'] = target_label
    if spec.target_views:
      inputs.append(target_inputs)
    weak_views = views.weak(tf.stack(inputs), step, part)
    if picked:
      source['weak'] = weak_views[: len(picked)]
    if 'weak' in spec.target_views:
      target['weak'] = weak_views[-1]
    if spec.has_strong_view:
      target['strong'] = views.strong(weak_views[-1], step, part, probabilities)
    if spec.source_strong:
      source['strong'] = views.strong_of_sources(
        source['weak'], step, part, probabilities
      )
    batch = {'source': source, 'target': target}
    if learns:
      batch['probe'] = views.probe(source['weak'], source['label'], step, part)
    return batch

  return batch_fn


def learns_views(options: ViewOptions, spec: BatchSpec) -> bool:
  """Says whether magnitudes of strong views are learned."""
  return options.strong == LEARNED and spec.has_strong_view


def _make_pick_fn(
  domain: Domain,
  config: ml_collections.ConfigDict,
  make_gather_fn: Callable[[Any], _GatherFn],
) -> Callable[[tf.Tensor, Part | None], tuple[tf.Tensor, tf.Tensor]]:
  seed = seeds.stream(config.run.seed, f'order of {domain.name}')
  unknown = np.full(domain.size, -1, np.int32)
  labels = tf.constant(unknown if domain.labels is None else domain.labels)
  gather = make_gather_fn(
    domain.inputs if domain.views is None else domain.views
  )
  view_seed = seeds.stream(config.run.seed, f'view of {domain.name}')

  def pick(step: tf.Tensor, part: Part | None) -> tuple[tf.Tensor, tf.Tensor]:
    indices = permutations.batch_indices(
      seed, step, config.data.batch_size, domain.size
    )
    if part is not None:
      indices = take_part(indices, part)
    inputs = gather(indices)
    if domain.views is not None:
      inputs = _draw_views(inputs, seeds.fold_in(view_seed, step), part)
    return inputs, tf.gather(labels, indices)

  return pick


def _draw_views(
  views: tf.Tensor, seed: tf.Tensor, part: Part | None
) -> tf.Tensor:
  """Draws one of the views `[B, V, F]` of every example, `[B, F]`."""

  def draw(size: tf.Tensor) -> tf.Tensor:
    return tf.random.stateless_uniform(
      [size], seed, 0, views.shape[1], tf.int32
    )

  drawn = draw_rows(draw, tf.shape(views)[0], part)
  return tf.gather(views, drawn, batch_dims=1)


def _make_gather_fn(inputs: Any) -> _GatherFn:
  """Returns a function from indices to inputs; makes sparse rows dense."""
  if isinstance(inputs, StreamedPictures):
    return functools.partial(_read_pictures, inputs)
  if not scipy.sparse.issparse(inputs):
    held = as_tensor(inputs)
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


def _read_pictures(pictures: StreamedPictures, places: tf.Tensor) -> tf.Tensor:
  """Reads pictures; a fault goes to `make_batches`, which TensorFlow hides."""

  def read(places: np.ndarray) -> np.ndarray:
    try:
      return pictures.read(places.tolist())
    except UserError as error:
      _faults.append(error)
      raise

  made = tf.numpy_function(read, [places], tf.uint8)
  return tf.ensure_shape(made, (places.shape[0], *pictures.shape[1:]))


def make_batches(
  batch_fn: BatchFn,
  start: int,
  stop: int,
  part: Part | None = None,
  probabilities: np.ndarray | None = None,
) -> Iterator[Batch]:
  """Returns the NumPy batches of steps `start` to `stop` − 1, made ahead."""
  batches = _make_batches(batch_fn, start, stop, part, probabilities)
  _unfinished.add(batches)
  return batches


@atexit.register
def _close_unfinished() -> None:
  """Ends what still makes batches.

  Later, its threads would wait for Python's lock, and Python for them.
  """
  for batches in list(_unfinished):
    batches.close()


def _make_batches(
  batch_fn: BatchFn,
  start: int,
  stop: int,
  part: Part | None,
  probabilities: np.ndarray | None,
) -> Generator[Batch, None, None]:
  options = tf.data.Options()
  # Its thread sleeps for up to a minute, and the end of a run waits for it.
  options.autotune.enabled = False
  dataset = tf.data.Dataset.range(start, stop).with_options(options)
  dataset = dataset.map(
    lambda step: batch_fn(step, part, probabilities),
    num_parallel_calls=os.cpu_count(),
    deterministic=True,
  )
  try:
    yield from dataset.prefetch(_MADE_AHEAD).as_numpy_iterator()
  except tf.errors.OpError:
    if _faults:
      raise _faults.pop() from None
    raise


def epoch_steps(domains: Domains, spec: BatchSpec, batch_size: int) -> int:
  """Returns the steps per epoch, set by the largest domain that is read."""
  read = list(domains.sources) if spec.sources else []
  if spec.has_target:
    read.append(domains.target)
  return -(-max(domain.size for domain in read) // batch_size)
