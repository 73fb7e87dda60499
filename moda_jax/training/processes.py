"""Several processes that train one run together, by `jax.distributed`.

Every process runs the same program. The first one alone writes the log and the
run's folder; Orbax has all of them write the checkpoints. What one process
alone knows of (a signal, the time, a mistake) all have to agree on, or the
others would wait for it for ever. In a single process all of this does nothing.
"""

import collections
import contextlib
import functools
import logging
import os
import sys
import time
import traceback
import types
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils

from moda_jax.errors import CommandEnd, ProcessLost, UserError
from moda_jax.training import devices as devices_lib

_HEARTBEAT = 30  # seconds without a sign of life until a process is given up
_REPORT = 1800  # seconds that the others wait for the first one's report
_GRACE = 3.0  # seconds that the first process gives the others to end by
_MESSAGE = 4000  # bytes of a message that others are told


def is_first() -> bool:
  """Says whether this process writes the log and the run's folder."""
  return jax.process_index() == 0


class Joined:
  """This process as one of several, until the end of a `with` block.

  An error that the others do not have ends the process at once, so that they
  notice: an orderly end would wait for them while they wait for it. In the
  block, `cli.end_by_message` has turned it into a message and a status.
  """

  def __init__(
    self, coordinator: str | None, count: int | None, index: int | None
  ):
    """Finds the other processes and waits for them.

    Args:
      coordinator: `HOST:PORT` of the first process, `count` how many there are,
        `index` which one this is, from 0; None for all of them has JAX ask the
        cluster: a TPU pod, SLURM or Open MPI.
      count: see `coordinator`.
      index: see `coordinator`.
    """
    self._where = (coordinator, count, index)

  def __enter__(self) -> None:
    coordinator, count, index = self._where
    _check_flags(coordinator, count, index)
    # It would keep SIGTERM to itself; `Agreement` does what it is for.
    with contextlib.suppress(AttributeError):  # JAX 0.8 has no such option
      jax.config.update('jax_enable_preemption_service', False)
    jax.config.update('jax_cpu_collectives_implementation', 'gloo')
    try:
      jax.distributed.initialize(
        coordinator,
        count,
        index,
        heartbeat_timeout_seconds=_HEARTBEAT,
        shutdown_timeout_seconds=_REPORT,
      )
    except (ValueError, RuntimeError) as error:
      raise UserError(_describe_failure(coordinator, error)) from error
    devices_lib.check_devices()
    meet()
    if not is_first():
      logging.getLogger('moda_jax').setLevel(logging.ERROR)

  def __exit__(
    self,
    kind: type[BaseException] | None,
    error: BaseException | None,
    trace: types.TracebackType | None,
  ) -> None:
    if error is None or getattr(error.__context__, 'shared', False):
      return
    if not isinstance(error, SystemExit):
      traceback.print_exception(error)
    sys.stdout.flush()
    sys.stderr.flush()
    if is_first():  # it coordinates: at its end JAX ends the others
      time.sleep(_GRACE)
    status = error.code if isinstance(error, SystemExit) else 1
    os._exit(status if isinstance(status, int) else 1)


def _check_flags(
  coordinator: str | None, count: int | None, index: int | None
) -> None:
  given = (coordinator, count, index)
  if given == (None, None, None):
    return
  if None in given:
    raise UserError(
      '--coordinator, --processes and --process must be given together; where '
      'JAX can find them by itself, --distributed does.'
    )
  if not 0 <= index < count:  # type: ignore[operator]
    raise UserError(
      f'--process={index}: it must be at least 0 and below --processes={count}.'
    )
  host, _, port = str(coordinator).rpartition(':')
  if not host or not port.isdecimal():
    raise UserError(
      f'--coordinator={coordinator}: it must be HOST:PORT of the first process.'
    )


def _describe_failure(coordinator: str | None, error: Exception) -> str:
  reason = str(error).splitlines()[0]
  if coordinator is None:
    return (
      '--distributed: JAX finds neither a TPU pod nor SLURM nor Open MPI here '
      f'({reason}). Name the processes instead: --coordinator=HOST:PORT '
      '--processes=N --process=K.'
    )
  return (
    f'--coordinator={coordinator}: the processes did not find each other: '
    f'{reason}.'
  )


def meet() -> None:
  """Waits for the other processes.

  What connects CPUs of several processes gives up when these come to their
  first exchange more than half a minute apart: so meet before something that
  may take some of them longer.
  """
  if jax.process_count() > 1:
    _exchange('')


@contextlib.contextmanager
def fail_together() -> Iterator[None]:
  """Ends all processes with the message of any that fails in the block.

  The block must not compute anything together with the other processes.
  """
  if jax.process_count() == 1:
    yield
    return
  meet()
  failed = None
  try:
    yield
  except CommandEnd as error:
    failed = error
  messages = _exchange(str(failed) if failed is not None else '')
  if failed is not None:
    failed.shared = True
    raise failed
  for index, message in enumerate(messages):
    if message:
      told = UserError(f'process {index}: {message}')
      told.shared = True
      raise told


def _exchange(text: str) -> list[str]:
  """Returns the texts of all processes."""
  data = text.encode()[:_MESSAGE]
  padded = np.frombuffer(data.ljust(_MESSAGE, b'\0'), np.uint8)
  with notice_loss():
    gathered = np.asarray(multihost_utils.process_allgather(padded))
  return [
    row.tobytes().rstrip(b'\0').decode(errors='ignore') for row in gathered
  ]


def check_alike(text: str, what: str) -> None:
  """Refuses processes for which `text` is not the same.

  Args:
    text: short, or a digest.
    what: it tells.
  """
  if jax.process_count() == 1:
    return
  texts = _exchange(text)
  for index, other in enumerate(texts):
    if other != texts[0]:
      error = UserError(
        f'process {index} has another {what} than process 0; all must be given '
        'the same command and data.'
      )
      error.shared = True
      raise error


def hear_first(text: str) -> str:
  """Returns the text of the first process; waits for all of them."""
  return text if jax.process_count() == 1 else _exchange(text)[0]


def hear_any(text: str) -> str:
  """Returns what any process tells, '' if none does; waits for all of them."""
  if jax.process_count() == 1:
    return text
  texts = _exchange(text)
  if len(set(texts)) == 1:
    return texts[0]
  told = ((index, text) for index, text in enumerate(texts) if text)
  return 'process {}: {}'.format(*next(told))


def any_of_all(wish: bool) -> bool:
  """Says whether any process has the wish; waits for all of them."""
  if jax.process_count() == 1:
    return wish
  with notice_loss():
    wishes = multihost_utils.process_allgather(np.array(wish))
  return bool(np.any(wishes))


@contextlib.contextmanager
def notice_loss() -> Iterator[None]:
  """Makes the error of a computation that has lost a process say so."""
  try:
    yield
  except jax.errors.JaxRuntimeError as error:
    if jax.process_count() == 1 or 'RESOURCE_EXHAUSTED' in str(error):
      raise
    raise ProcessLost(
      'Another process has ended or cannot be reached: see its log. The same '
      'command on all of them resumes from the last checkpoint. '
      f'({str(error).splitlines()[0]})'
    ) from error


class Agreement:
  """What any process wishes, known to all of them at the same step.

  Asked once in every step, it answers for an earlier one, which has been
  computed by then: nothing waits. In a single process it answers at once.
  """

  def __init__(self, devices: int):
    """Prepares to ask.

    Args:
      devices: of all processes.
    """
    self._devices = devices
    self._asked: collections.deque[jax.Array] = collections.deque()
    self._held: dict[tuple[bool, ...], jax.Array] = {}

  def ask(self, *wishes: bool) -> tuple[bool, ...]:
    """Returns for each wish whether any process had it."""
    if jax.process_count() == 1:
      return wishes
    self._asked.append(self._sum(self._place(wishes)))
    if len(self._asked) <= devices_lib.STEPS_UNDER_WAY:
      return (False,) * len(wishes)
    return tuple(bool(x) for x in np.asarray(self._asked.popleft()))

  def forget(self) -> None:
    """Drops what was wished before now; wishes that last are asked again."""
    self._asked.clear()

  def _place(self, wishes: tuple[bool, ...]) -> jax.Array:
    if wishes not in self._held:
      own = devices_lib.own_devices(self._devices)
      rows = np.tile(np.array(wishes, np.int32), (own, 1))
      self._held[wishes] = devices_lib.put_on_devices(rows, self._devices)
    return self._held[wishes]

  @functools.cached_property
  def _sum(self) -> jax.stages.Wrapped:
    everywhere = devices_lib.everywhere(self._devices)
    return jax.jit(lambda rows: jnp.sum(rows, 0), out_shardings=everywhere)
