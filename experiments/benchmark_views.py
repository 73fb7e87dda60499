"""Images per second of the strong view: this pipeline against three others.

  python -m experiments.benchmark_views

All make the same views, a cutout and two operations per image at a magnitude of
3 to 10, and take turns, so that a busy machine is busy for all of them. Ratios
are medians over the rounds, each against the Pillow loop of the same round. CPU
time is that of all threads: the steadier figure where cores are shared.
"""

import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np
from absl import flags

from moda_jax import cli

_CORES = flags.DEFINE_multi_integer('cores', [1, 2], 'Numbers of cores.')
_ROUNDS = flags.DEFINE_integer('rounds', 5, 'Turns of each contestant.')
_SECONDS = flags.DEFINE_float('seconds', 0.5, 'Length of a turn.')
_OUTPUT = flags.DEFINE_string('output', None, 'A JSON file for the figures.')
_WORKER = flags.DEFINE_bool('worker', False, 'Measures on the given cores.')

_CASES = ((32, 8), (32, 64), (32, 512), (256, 8), (256, 32))  # size, batch
_LOOP = 'Pillow loop'
_EXCLUDE = ('FlipX',)
_TESTS = pathlib.Path(__file__).resolve().parents[1] / 'tests' / 'data'

Batches = Iterator[np.ndarray]


def _make_images(size: int, count: int) -> np.ndarray:
  """Smooth images with some noise, [count, size, size, 3]."""
  rng = np.random.default_rng(0)
  coarse = rng.integers(30, 220, (count, size // 8, size // 8, 3))
  smooth = coarse.repeat(8, axis=1).repeat(8, axis=2)
  noisy = smooth + rng.normal(0, 9, smooth.shape)
  return np.clip(noisy, 0, 255).astype(np.uint8)


def _augment_by_pillow(images: np.ndarray, rng: random.Random) -> np.ndarray:
  import pillow_views  # What the tests compare the pipeline with.

  names = [*pillow_views.ON_OR_OFF, *pillow_views.VALUED]
  names = [name for name in names if name not in _EXCLUDE]
  magnitude = rng.randint(3, 10)
  _, height, width, _ = images.shape
  views = np.empty_like(images)
  for place, image in enumerate(images):
    chosen, signs = rng.choices(names, k=2), rng.choices((1, -1), k=2)
    center = rng.uniform(0, width), rng.uniform(0, height)
    views[place] = pillow_views.strong(
      image, chosen, signs, magnitude, center, 'first'
    )
  return views


def _pillow_loop(images: np.ndarray) -> Batches:
  rng = random.Random(0)
  while True:
    yield _augment_by_pillow(images, rng)


def _pillow_in_tf_data(images: np.ndarray, cores: int) -> Batches:
  import tensorflow as tf

  def call(step: np.ndarray) -> np.ndarray:
    return _augment_by_pillow(images, random.Random(int(step)))

  steps = tf.data.Dataset.range(2**40)
  return steps.map(
    lambda step: tf.numpy_function(call, [step], tf.uint8), cores
  ).as_numpy_iterator()


def _this_pipeline(images: np.ndarray, cores: int) -> Batches:
  import tensorflow as tf

  from moda_jax.data import randaugment

  def views(step: tf.Tensor) -> tf.Tensor:
    seed = tf.stack([step, 0])
    magnitude = randaugment.draw_magnitude(seed, 3, 10)
    return randaugment.randaugment(
      images, seed, magnitude=magnitude, exclude=_EXCLUDE
    )

  steps = tf.data.Dataset.range(2**40)
  return steps.map(views, cores).as_numpy_iterator()


def _switch_per_image(images: np.ndarray, cores: int) -> Batches:
  """Uncompiled ops, a `switch_case` per operation; no cutout even."""
  import tensorflow as tf

  from moda_jax.data import operations, randaugment

  count, height, width, _ = images.shape
  table = np.array(
    [
      [
        [randaugment.operation_value(name, m, sign) for sign in (-1, 1)]
        for name in operations.OPERATIONS
      ]
      for m in range(randaugment.MAX_MAGNITUDE + 1)
    ]
  )

  def view(step: tf.Tensor) -> tf.Tensor:
    seed = tf.stack([step, 0])
    magnitude = randaugment.draw_magnitude(seed, 3, 10)
    draws = randaugment.draw(seed, 1, (height, width), exclude=_EXCLUDE)
    chosen, signs = draws.operations[0], draws.signs[0]
    columns = [tf.fill([2], magnitude), chosen, (signs + 1) // 2]
    values = tf.gather_nd(table, tf.stack(columns, axis=-1))
    settings = operations.make_settings(chosen, values, (height, width))
    image = tf.gather(images, step % count)
    for turn in range(2):
      setting = operations.Settings(*(values[turn] for values in settings))
      image = operations.operate(image, setting)
    return image

  views = tf.data.Dataset.range(2**40).map(view, cores)
  return views.batch(count, drop_remainder=True).as_numpy_iterator()


def _take_turn(batches: Batches, cores: int) -> tuple[float, float]:
  """Images per second, and CPU microseconds per image, of one turn."""
  for _ in range(cores + 1):  # What was made ahead since the last turn.
    next(batches)
  images, start, cpu = 0, time.perf_counter(), time.process_time()
  while time.perf_counter() - start < _SECONDS.value:
    images += len(next(batches))
  elapsed = time.perf_counter() - start
  return images / elapsed, 1e6 * (time.process_time() - cpu) / images


def _measure(size: int, batch: int, cores: int) -> list[dict[str, object]]:
  images = _make_images(size, batch)
  contestants = {
    _LOOP: _pillow_loop(images),
    'this pipeline': _this_pipeline(images, cores),
    'Pillow, numpy_function': _pillow_in_tf_data(images, cores),
    'switch_case per image': _switch_per_image(images, cores),
  }
  turns = {name: [] for name in contestants}
  for _ in range(_ROUNDS.value):
    for name, batches in contestants.items():
      turns[name].append(_take_turn(batches, cores))
  loop_rates = [rate for rate, _ in turns[_LOOP]]
  rows = []
  for name, turn in turns.items():
    rates, cpu = zip(*turn, strict=True)
    ratios = [r / loop for r, loop in zip(rates, loop_rates, strict=True)]
    rows.append(
      {
        'cores': cores,
        'size': size,
        'batch': batch,
        'contestant': name,
        'images_per_second': statistics.median(rates),
        'times_the_loop': statistics.median(ratios),
        'lowest': min(ratios),
        'cpu_us_per_image': statistics.median(cpu),
      }
    )
  return rows


def _work(cores: int) -> None:
  """Measures all cases on so many cores; prints one line of JSON."""
  available = sorted(os.sched_getaffinity(0))
  # Before TensorFlow starts, which takes as many threads as it sees cores.
  os.sched_setaffinity(0, available[:cores])
  sys.path.append(str(_TESTS))
  rows = [row for case in _CASES for row in _measure(*case, cores)]
  print(json.dumps(rows))


def _measure_in_process(cores: int) -> list[dict[str, object]]:
  command = [sys.executable, '-m', 'experiments.benchmark_views', '--worker']
  command += [f'--cores={cores}', f'--rounds={_ROUNDS.value}']
  command += [f'--seconds={_SECONDS.value}']
  done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
  return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
  """Measures and prints the table."""
  if _WORKER.value:
    _work(_CORES.value[0])
    return
  print(
    'cores size batch  contestant               images/s   × loop    least'
    ' CPU µs/image'
  )
  rows = []
  for cores in _CORES.value:
    for row in _measure_in_process(cores):
      rows.append(row)
      print(
        f'{row["cores"]:5} {row["size"]:4} {row["batch"]:5}'
        f'  {row["contestant"]:24} {row["images_per_second"]:8.0f}'
        f' {row["times_the_loop"]:8.2f} {row["lowest"]:8.2f}'
        f' {row["cpu_us_per_image"]:12.1f}'
      )
  if _OUTPUT.value:
    pathlib.Path(_OUTPUT.value).write_text(json.dumps(rows, indent=2) + '\n')


if __name__ == '__main__':
  cli.run(main)
