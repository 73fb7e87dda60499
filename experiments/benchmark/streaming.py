"""Pictures read from disk at every step: speed, memory and time to start.

The pictures are made up: three sources and a target in the layout of a user's
folder, or as TFDS prepares DomainNet.
"""

import itertools
import multiprocessing
import os
import pathlib
import time
from collections.abc import Iterator
from typing import Any

from experiments.benchmark import made_up_pictures, memory, rounds
from experiments.benchmark.made_up_pictures import DOMAINS
from experiments.benchmark.options import Options
from moda_jax.data.spec import BatchSpec

FOLDER, DOMAINNET = 'a folder', 'DomainNet by TFDS, ArrayRecord'
_SIZE, _BATCH = 128, 16
STREAMED, HELD = 'streamed', 'in memory, 2,000 pictures'
DECODED = 'tf.io.decode_jpeg alone'
_PATIENCE = 30.0  # seconds
_SPEC = BatchSpec(sources=True, target_views=('weak',))


def measure(layout: str, options: Options) -> dict[str, Any]:
  """Returns pictures per second, growth of memory and seconds to start.

  Args:
    layout: `FOLDER` or `DOMAINNET`.
    options: of the benchmark.
  """
  count = 4_000 if options.quick else 100_000
  folder = options.folder / 'pictures'
  size = made_up_pictures.write_pictures(folder, count)
  context = multiprocessing.get_context('spawn')
  if layout == DOMAINNET:
    data_dir = options.folder / 'tfds'
    data_dir.mkdir()
    with context.Pool(1) as pool:
      job = (folder, count, data_dir)
      pool.apply(made_up_pictures.prepare_domainnet, job)
  with context.Pool(1) as pool:  # whose memory nothing else has grown
    job = (layout, folder, 2 if options.quick else 5)
    found = pool.apply(_measure, job)
  return found | {'layout': layout, 'count': count, 'gigabytes': size / 1e9}


def _measure(layout: str, folder: pathlib.Path, count: int) -> dict[str, Any]:
  from moda_jax.data.batches import epoch_steps
  from moda_jax.data.load import load_domains

  config = _make_config(layout, folder, 'no')
  before, start = memory.peak(), time.perf_counter()
  domains = load_domains(config)
  listed = time.perf_counter() - start
  feed = _read_batches(config, domains)
  steps = epoch_steps(domains, _SPEC, _BATCH)
  read = sum(itertools.islice(feed, steps))  # alone, to see its memory
  grown = memory.peak() - before
  turns = {STREAMED: _make_turn(feed)}
  held = _make_config(layout, folder, 'yes')
  turns[HELD] = _make_turn(_read_batches(held, load_domains(held)))
  turns[DECODED] = _make_turn(_decode(folder))
  figures = rounds.take_turns(turns, count)
  return {
    'listed_seconds': listed,
    'grown': grown,
    'read': read,
    'rates': {k: rounds.summarise(v) for k, v in figures.items()},
    'against_decoding': rounds.compare(figures[STREAMED], figures[DECODED]),
  }


def _make_config(layout: str, folder: pathlib.Path, held: str) -> Any:
  import moda_jax

  if layout == FOLDER:
    argument = f'folder:{folder},target={DOMAINS[-1]},network=resnet50'
  else:
    argument = f'domainnet:{DOMAINS[-1]},data_dir={folder.parent / "tfds"}'
  argument += f',image_size={_SIZE},batch_size={_BATCH},memory={held}'
  argument += ',samples=500' * (held == 'yes')
  config = moda_jax.get_config(argument)
  config.data.sources = DOMAINS[:-1]
  return config


def _read_batches(config: Any, domains: Any) -> Iterator[int]:
  """Yields how many pictures each batch has, without distorted views."""
  from moda_jax.data import batches

  batch_fn = batches.make_batch_fn(domains, _SPEC, config)
  for _ in batches.make_batches(batch_fn, 0, 2**30):
    yield _BATCH * len(DOMAINS)


def _decode(folder: pathlib.Path) -> Iterator[int]:
  import tensorflow as tf

  files = [str(p) for d in DOMAINS for p in (folder / d).glob('*/*.jpg')]
  data = tf.data.Dataset.from_tensor_slices(files).shuffle(len(files), seed=0)
  data = data.repeat().map(
    lambda file: tf.shape(tf.io.decode_jpeg(tf.io.read_file(file))),
    num_parallel_calls=os.cpu_count(),
  )
  size = _BATCH * len(DOMAINS)
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
  """Waits for what the feeds of other turns still make ahead, up to 30 s.

  Asks what threads do, for on a busy machine they take hardly any time.
  """
  quiet, end = 0, time.monotonic() + _PATIENCE
  while quiet < 5 and time.monotonic() < end:
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
    f'{result["gigabytes"]:.1f} GB: {result["layout"]}',
    '',
    '| | pictures/s |',
    '|---|---|',
  ]
  for name, rate in result['rates'].items():
    lines.append(f'| {name} | {rounds.show(rate, digits=0)} |')
  ratio = rounds.show(result['against_decoding'], 100, 0)
  reading = 'them'  # in results of before there was a count
  if 'read' in result:
    reading = f'{result["read"]:,} pictures, one pass over those to train on'
  return [
    *lines,
    '',
    f'500 × 400 pixels brought to {_SIZE} × {_SIZE}; streamed reaches '
    f'{ratio} % of decoding alone, without resizing. Listing '
    'them, labels and a fingerprint included, takes '
    f'{result["listed_seconds"]:.1f} s; the process grows by '
    f'{result["grown"]:.2f} GiB at most while it reads {reading}.',
    '',
  ]
