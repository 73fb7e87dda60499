"""A set after the description of SynthDigits, drawn from fonts in parallel."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

import tensorflow_datasets as tfds

from moda_jax.datasets import digits
from moda_jax.datasets.synth_digits import draw

COUNTS = {'train': 50_000, 'test': 10_000}


def generate(
  split: str, count: int | None = None, processes: int | None = None
) -> digits.Examples:
  """Yields examples of a split, the same whatever the number of processes.

  Args:
    split: 'train' or 'test'.
    count: how many examples, instead of `COUNTS[split]`.
    processes: how many, instead of one per core.
  """
  count = COUNTS[split] if count is None else count
  processes = (os.cpu_count() or 1) if processes is None else processes
  bar = tfds.core.utils.tqdm(
    total=count, desc=f'Drawing {split} digits', unit=' images', leave=False
  )
  with bar, contextlib.ExitStack() as stack:
    # Process k draws every processes-th image from k on; a full pipe makes it
    # wait, and a closed one, should this process be killed, ends it.
    workers = [
      stack.enter_context(_worker(split, first, count, processes))
      for first in range(processes)
    ]
    for index in range(count):
      png = _read_png(workers[index % processes])
      yield f'{index:06d}', {'image': png, 'label': index % 10}
      bar.update(1)


@contextlib.contextmanager
def _worker(
  split: str, first: int, stop: int, step: int
) -> Iterator[subprocess.Popen]:
  """Starts a new process: TensorFlow's threads would not survive a fork.

  `multiprocessing` is not used: it would run the user's script a second time.
  """
  program = f'import {draw.__name__} as draw; draw.main()'
  process = subprocess.Popen(
    [sys.executable, '-c', program, split, str(first), str(stop), str(step)],
    stdout=subprocess.PIPE,
    process_group=0,  # Ctrl-C is for us, who then end it
    env=os.environ | {'PYTHONPATH': os.pathsep.join(sys.path)},
  )
  try:
    yield process
  finally:
    process.kill()
    process.communicate()


def _read_png(worker: subprocess.Popen) -> bytes:
  stream = worker.stdout
  assert stream is not None  # `_worker` asks for it
  header = stream.read(draw.LENGTH.size)
  size = draw.LENGTH.unpack(header)[0] if header else 0
  png = stream.read(size)
  if not png or len(png) < size:
    raise RuntimeError(f'{worker.args!r} ended early.')
  return png
