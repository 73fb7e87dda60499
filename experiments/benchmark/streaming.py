"""Pictures read from disk at every step: speed, memory and time to start.

The pictures are made up: few different ones, each in very many JPEG files, in
the layout of a user's folder with three sources and a target.
"""

import io
import multiprocessing
import os
import pathlib
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from PIL import Image

from experiments.benchmark import memory, rounds
from experiments.benchmark.options import Options

_DOMAINS, _CLASSES = ('clipart', 'quickdraw', 'real', 'sketch'), 50
_DIFFERENT = 200
_SIZE, _BATCH = 128, 16
STREAMED, HELD = 'streamed', 'in memory, 2,000 pictures'
DECODED = 'tf.io.decode_jpeg alone'


def measure(options: Options) -> dict[str, Any]:
  """Returns pictures per second, growth of memory and seconds to start."""
  count = 4_000 if options.quick else 100_000
  size = write_pictures(options.folder, count)
  context = multiprocessing.get_context('spawn')
  with context.Pool(1) as pool:  # whose memory nothing else has grown
    found = pool.apply(_measure, (options.folder, 2 if options.quick else 5))
  return found | {'count': count, 'gigabytes': size / 1e9}


def write_pictures(folder: pathlib.Path, count: int) -> int:
  """Writes `<domain>/<class>/<number>.jpg`; returns their bytes in all."""
  rng = np.random.default_rng(0)
  encoded = [_encode(rng) for _ in range(_DIFFERENT)]
  total = 0
  for domain in _DOMAINS:
    for i in range(count // len(_DOMAINS)):
      file = folder / domain / f'class{i % _CLASSES:03d}' / f'{i}.jpg'
      file.parent.mkdir(parents=True, exist_ok=True)
      data = encoded[rng.integers(_DIFFERENT)]
      file.write_bytes(data)
      total += len(data)
  return total


def _encode(rng: np.random.Generator) -> bytes:
  coarse = rng.integers(0, 256, (40, 50, 3), np.uint8)
  smooth = Image.fromarray(coarse).resize((500, 400), Image.Resampling.BICUBIC)
  noise = rng.normal(0, 6, (400, 500, 3))
  pixels = np.clip(np.asarray(smooth) + noise, 0, 255).astype(np.uint8)
  file = io.BytesIO()
  Image.fromarray(pixels).save(file, 'JPEG', quality=85)
  return file.getvalue()


def _measure(folder: pathlib.Path, count: int) -> dict[str, Any]:
  import moda_jax
  from moda_jax.data.load import load_domains

  argument = f'folder:{folder},target={_DOMAINS[-1]},network=resnet50'
  argument += f',image_size={_SIZE},batch_size={_BATCH},memory='
  config = moda_jax.get_config(f'{argument}no')
  before, start = memory.peak(), time.perf_counter()
  domains = load_domains(config)
  listed = time.perf_counter() - start
  turns = {STREAMED: _make_turn(_read_batches(config, domains))}
  figures = rounds.take_turns(turns, 1)  # alone, to see its memory
  grown = memory.peak() - before
  held = moda_jax.get_config(f'{argument}yes,samples=500')
  turns[HELD] = _make_turn(_read_batches(held, load_domains(held)))
  turns[DECODED] = _make_turn(_decode(folder))
  figures = rounds.take_turns(turns, count)
  return {
    'listed_seconds': listed,
    'grown': grown,
    'rates': {k: rounds.summarise(v) for k, v in figures.items()},
    'against_decoding': rounds.compare(figures[STREAMED], figures[DECODED]),
  }


def _read_batches(config: Any, domains: Any) -> Iterator[int]:
  """Yields how many pictures each batch has, without distorted views."""
  from moda_jax.data import batches
  from moda_jax.data.spec import BatchSpec

  spec = BatchSpec(sources=True, target_views=('weak',))
  batch_fn = batches.make_batch_fn(domains, spec, config)
  for _ in batches.make_batches(batch_fn, 0, 2**30):
    yield _BATCH * len(_DOMAINS)


def _decode(folder: pathlib.Path) -> Iterator[int]:
  import tensorflow as tf

  files = [str(p) for p in (folder / _DOMAINS[0]).glob('*/*.jpg')]
  data = tf.data.Dataset.from_tensor_slices(files).shuffle(len(files), seed=0)
  data = data.repeat().map(
    lambda file: tf.shape(tf.io.decode_jpeg(tf.io.read_file(file))),
    num_parallel_calls=os.cpu_count(),
  )
  size = _BATCH * len(_DOMAINS)
  for _ in data.batch(size).prefetch(4):
    yield size


def _make_turn(feed: Iterator[int], seconds: float = 3.0) -> rounds.Turn:
  def turn() -> float:
    _wait_until_idle()
    for _ in range(8):  # what was made ahead since the last turn
      next(feed)
    made, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
      made += next(feed)
    return made / (time.perf_counter() - start)

  return turn


def _wait_until_idle() -> None:
  """Waits for what the feeds of other turns still make ahead.

  Asks what threads do, for on a busy machine they take hardly any time.
  """
  quiet = 0
  while quiet < 5:
    time.sleep(0.02)
    quiet = 0 if _count_running() > 1 else quiet + 1  # this one is


def _count_running() -> int:
  """Returns how many threads of this process run, want to, or read a disk."""
  count = 0
  for status in pathlib.Path('/proc/self/task').glob('*/stat'):
    try:
      count += status.read_text().rpartition(')')[2].split()[0] in 'RD'
    except OSError:  # it has ended
      continue
  return count


def describe(result: dict[str, Any]) -> list[str]:
  """Returns the lines of Markdown."""
  lines = [
    f'### {result["count"]:,} pictures read from disk, '
    f'{result["gigabytes"]:.1f} GB',
    '',
    '| | pictures/s |',
    '|---|---|',
  ]
  for name, rate in result['rates'].items():
    lines.append(f'| {name} | {rounds.show(rate, digits=0)} |')
  ratio = rounds.show(result['against_decoding'], 100, 0)
  return [
    *lines,
    '',
    f'500 × 400 pixels brought to {_SIZE} × {_SIZE}; streamed reaches '
    f'{ratio} % of decoding alone, without resizing. Listing '
    f'them, with a fingerprint, takes {result["listed_seconds"]:.1f} s; the '
    'process grows by '
    f'{result["grown"]:.2f} GiB at most while it reads them.',
    '',
  ]
