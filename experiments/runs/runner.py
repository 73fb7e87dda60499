"""Trains requested runs, several at a time, each in a process of its own.

Each process has one GPU, a whole TPU, or else one CPU core: the number of cores
changes the order of sums and so the bits of a result. What a run writes to its
terminal is in `<run folder>.log`.
"""

import importlib.util
import os
import pathlib
import queue
import re
import signal
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from experiments.runs import descriptions, records
from experiments.runs.failures import Failures
from experiments.runs.requests import Request
from moda_jax.errors import Interrupted, Terminated, UserError
from moda_jax.training import options


class Slot(NamedTuple):
  """What one run at a time may use.

  Attributes:
    cores: CPU cores; none where the system does not say.
    environment: further variables of the process.
  """

  cores: tuple[int, ...] = ()
  environment: Mapping[str, str] = types.MappingProxyType({})


def find_slots(jobs: int = 0) -> list[Slot]:
  """Returns a slot for each GPU, or else for each CPU core.

  The chips of a TPU serve one process at a time: there is one slot for them.

  Args:
    jobs: how many slots; 0 takes all. More jobs than GPUs or cores share them.
  """
  gpus = _find_gpus()
  if gpus:
    return _share_gpus(gpus, jobs or len(gpus))
  if _has_tpu():
    if jobs > 1:
      raise UserError(
        f'--jobs={jobs}: the chips of a TPU serve one process at a time. '
        'JAX_PLATFORMS=cpu leaves them out.'
      )
    return [Slot()]
  if hasattr(os, 'sched_getaffinity'):
    slots = [Slot((core,)) for core in sorted(os.sched_getaffinity(0))]
  else:
    slots = [Slot()] * (os.cpu_count() or 1)
  jobs = jobs or len(slots)
  return [slots[i % len(slots)] for i in range(jobs)]


# JAX's names of the share of a GPU's memory that a process takes, now and once.
_MEMORY = ('XLA_CLIENT_MEM_FRACTION', 'XLA_PYTHON_CLIENT_MEM_FRACTION')
_SHARED = 0.9  # of the memory; each process needs some beside


def _share_gpus(gpus: Sequence[str], jobs: int) -> list[Slot]:
  """Returns slots whose processes find room beside those on the same GPU."""
  memory = {}
  each = -(-jobs // len(gpus))
  if each > 1 and not any(os.environ.get(name) for name in _MEMORY):
    memory = {_MEMORY[1]: f'{_SHARED / each:.3f}'}
  return [
    Slot((), {'CUDA_VISIBLE_DEVICES': gpus[i % len(gpus)], **memory})
    for i in range(jobs)
  ]


def _find_gpus() -> list[str]:
  """Returns the numbers of NVIDIA's devices that this process may use."""
  if os.environ.get('JAX_PLATFORMS', '').startswith('cpu'):
    return []
  chosen = os.environ.get('CUDA_VISIBLE_DEVICES')
  if chosen is not None:
    return [name for name in chosen.split(',') if name]
  found = pathlib.Path('/proc/driver/nvidia/gpus').glob('*')
  return [str(i) for i, _ in enumerate(found)]


_DEVICES = pathlib.Path('/dev')


def _has_tpu() -> bool:
  """Says whether JAX will look for a TPU, and this machine has its chips."""
  platform = os.environ.get('JAX_PLATFORMS', '').partition(',')[0]
  # Numbered: a directory /dev/accel and /dev/vfio/vfio are of other hardware,
  # and virtual machines have the numbers of vfio too: JAX needs libtpu as well.
  found = [*_DEVICES.glob('accel[0-9]*'), *_DEVICES.glob('vfio/[0-9]*')]
  has_library = importlib.util.find_spec('libtpu') is not None
  return platform in ('', 'tpu') and bool(found) and has_library


Train = Callable[[Request, Slot], None]
_running: set[subprocess.Popen] = set()


def train_in_process(request: Request, slot: Slot) -> None:
  """Trains or resumes a run by `python -m moda_jax.main`; waits for its end.

  Raises:
    UserError: it ended in a failure; says what the log ends with.
    Interrupted: it was asked to stop and has saved its state.
  """
  command = ['moda_jax.main', *request.flags()]
  run_process(command, request.log, slot, request.name)


def run_process(
  command: Sequence[str], log: pathlib.Path, slot: Slot, name: str
) -> None:
  """Runs a module of Python within a slot; see `train_in_process`.

  Args:
    command: the module and its flags.
    log: what the process writes is appended to it.
    slot: what it may use.
    name: what it is called in messages.
  """
  log.parent.mkdir(parents=True, exist_ok=True)
  with log.open('a') as file:
    start = file.tell()
    process = subprocess.Popen(
      [sys.executable, '-m', *command],
      stdout=file,
      stderr=subprocess.STDOUT,
      env={**os.environ, **slot.environment},
    )
    if slot.cores and hasattr(os, 'sched_setaffinity'):
      # Long before the interpreter has started: its threads inherit it.
      os.sched_setaffinity(process.pid, slot.cores)
    _running.add(process)
    status = process.wait()
    _running.discard(process)
  if status in (Interrupted.status, Terminated.status):
    raise Interrupted(f'{name} was stopped')
  if status:
    raise UserError(_find_reason(log, start, status))


# How lines of a log begin, this package's and those of TensorFlow and XLA.
_LOGGED = re.compile(r'(\d+[:-]\d\d[:-]\d\d|[IWEF]\d{4}) ')
_MESSAGE_LINES = 5  # at most, of what a process says in the end


def _find_reason(log: pathlib.Path, start: int, status: int) -> str:
  """Returns what a process wrote at its end, after all that it logged.

  Args:
    log: what it wrote is in this file.
    start: the place in bytes where that begins.
    status: what it ended with.
  """
  text = log.read_bytes()[start:].decode(errors='replace')
  lines = [line for line in text.splitlines() if line.strip()]
  logged = [i for i, line in enumerate(lines) if _LOGGED.match(line)]
  message = lines[logged[-1] + 1 :] if logged else lines
  if status == UserError.status and message:
    return '\n'.join(message[-_MESSAGE_LINES:])
  last = lines[-1] if lines else 'nothing'
  return f'status {status} after it wrote: {last}'


def train_missing(
  requests: Sequence[Request],
  path: pathlib.Path,
  slots: Sequence[Slot],
  train: Train = train_in_process,
  known: Sequence[records.Line] = (),
) -> None:
  """Trains what a file of results lacks, and appends a line for each run.

  A run that fails leaves the others alone; why is reported in the end, each
  reason once. On SIGINT or SIGTERM the runs under way save and end, and no
  others start.

  Args:
    requests: in the order in which they are started; all are checked first.
    path: the file of results.
    slots: what each of the runs at a time may use.
    train: trains one run to its end.
    known: lines of other files, whose runs are not trained again either.
  """
  lines = [*known, *records.read_lines(path)]
  missing: queue.SimpleQueue[Request] = queue.SimpleQueue()
  for request in requests:
    if not records.has_run(lines, request):
      options.check(request.config())
      missing.put(request)
  print(f'{missing.qsize()} of {len(requests)} runs to train', flush=True)
  failures = Failures()
  workers = [
    threading.Thread(target=_work, args=(missing, path, slot, train, failures))
    for slot in slots[: missing.qsize()]
  ]
  for worker in workers:
    worker.start()
  wait_for(workers, failures)


def wait_for(workers: Sequence[threading.Thread], failures: Failures) -> None:
  """Waits for the threads; a signal reaches the runs, which save and end.

  Raises:
    UserError: some of the work failed.
    Interrupted: a signal came, or stopped one of the runs.
  """
  error: type[Interrupted] = Interrupted

  def pass_on(number: int, _: object) -> None:
    nonlocal error
    error = Terminated if number == signal.SIGTERM else error
    failures.stop.set()
    if number == signal.SIGTERM:  # SIGINT has reached the whole group
      for process in list(_running):
        process.terminate()

  handled = (signal.SIGINT, signal.SIGTERM)
  before = {number: signal.signal(number, pass_on) for number in handled}
  try:
    for worker in workers:
      worker.join()
  finally:
    for number, handler in before.items():
      signal.signal(number, handler)
  if failures.stop.is_set():
    told = [failures.describe(), 'stopped; the same command goes on']
    raise error('\n'.join(filter(None, told)))
  failures.check()


def _work(
  missing: 'queue.SimpleQueue[Request]',
  path: pathlib.Path,
  slot: Slot,
  train: Train,
  failures: Failures,
) -> None:
  """Trains one run after the other until none is left."""
  commit = descriptions.find_commit()
  while not failures.stop.is_set():
    try:
      request = missing.get_nowait()
    except queue.Empty:
      return
    with failures.collect(request.name, request.log):
      _train_and_record(request, path, slot, train, commit)


def _train_and_record(
  request: Request,
  path: pathlib.Path,
  slot: Slot,
  train: Train,
  commit: str | None,
) -> None:
  print(f'{request.name}: {request.folder}', flush=True)
  start = time.monotonic()
  train(request, slot)
  seconds = round(time.monotonic() - start, 1)
  lines = descriptions.describe_run(
    request.folder, request.setting, seconds, commit
  )
  records.append_lines(path, lines)
  print(
    f'{request.name}: {100 * lines[0]["accuracy"]:.2f} % after {seconds:.0f} s',
    flush=True,
  )
