"""Images per second of the strong view: this pipeline against a Pillow loop.

Both make a cutout and two operations per image at a magnitude of 3 to 10.
"""

import multiprocessing
import os
import random
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from experiments.benchmark import pillow_loop, rounds, settings
from experiments.benchmark.options import Options

_CASES = ((32, 8), (32, 64), (32, 512), (256, 8), (256, 32))  # size, batch
_QUICK_CASES = ((32, 8), (32, 64), (256, 8))
_EXCLUDE = ('FlipX',)
_LOOP, _OURS = 'Pillow loop', 'this pipeline'

Batches = Iterator[np.ndarray]


def measure(options: Options) -> dict[str, Any]:
  """Returns a row per number of cores, image size and batch."""
  cases = _QUICK_CASES if options.quick else _CASES
  seconds, count = (0.2, 2) if options.quick else (0.5, 5)
  context = multiprocessing.get_context('spawn')
  rows = []
  for cores in sorted({1, len(os.sched_getaffinity(0))}):
    # TensorFlow takes as many threads as it sees cores, when it starts.
    with context.Pool(1, _use_cores, (cores,)) as pool:
      for size, batch in cases:
        arguments = (size, batch, cores, seconds, count)
        rows.append(pool.apply(_measure_case, arguments))
  return {'rows': rows}


def _use_cores(count: int) -> None:
  os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def _measure_case(
  size: int, batch: int, cores: int, seconds: float, count: int
) -> dict[str, Any]:
  images = settings.make_images(size, batch, np.random.default_rng(0))
  feeds = {_LOOP: _run_loop(images), _OURS: _run_pipeline(images, cores)}
  figures = rounds.take_turns(
    {name: _make_turn(feed, cores, seconds) for name, feed in feeds.items()},
    count,
  )
  return {
    'cores': cores,
    'size': size,
    'batch': batch,
    'images_per_second': {k: rounds.summarise(v) for k, v in figures.items()},
    'ratio': rounds.compare(figures[_OURS], figures[_LOOP]),
  }


def _run_loop(images: np.ndarray) -> Batches:
  rng = random.Random(0)
  while True:
    yield pillow_loop.strong_views(images, rng, _EXCLUDE)


def _run_pipeline(images: np.ndarray, cores: int) -> Batches:
  import tensorflow as tf

  from moda_jax.data import magnitudes, randaugment

  def make_views(step: tf.Tensor) -> tf.Tensor:
    seed = tf.stack([step, 0])
    magnitude = magnitudes.draw_magnitude(seed, 3, 10)
    return randaugment.randaugment(
      images, seed, magnitude=magnitude, exclude=_EXCLUDE
    )

  steps = tf.data.Dataset.range(2**40)
  return steps.map(make_views, cores).as_numpy_iterator()


def _make_turn(feed: Batches, cores: int, length: float) -> rounds.Turn:
  def turn() -> float:
    for _ in range(cores + 1):  # what was made ahead since the last turn
      next(feed)
    images, start = 0, time.perf_counter()
    while time.perf_counter() - start < length:
      images += len(next(feed))
    return images / (time.perf_counter() - start)

  return turn


def describe(result: dict[str, Any]) -> list[str]:
  """Returns the lines of Markdown."""
  lines = [
    '### The strong view, images per second',
    '',
    f'| cores | size | batch | {_LOOP} | {_OURS} | times the loop |',
    '|---|---|---|---|---|---|',
  ]
  for row in result['rows']:
    loop, ours = (row['images_per_second'][name] for name in (_LOOP, _OURS))
    lines.append(
      f'| {row["cores"]} | {row["size"]} | {row["batch"]} '
      f'| {loop["median"]:,.0f} | {ours["median"]:,.0f} '
      f'| {rounds.show(row["ratio"])} |'
    )
  return [*lines, '']
