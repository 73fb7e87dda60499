"""Ctrl-C and SIGTERM while training: acknowledged at once, nothing lost."""

import builtins
import contextlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator

from moda_jax.errors import Interrupted, Terminated

_log = logging.getLogger(__name__)
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stop(threading.Event):
  """Is set when the run is asked to stop.

  Attributes:
    is_terminated: whether it is by SIGTERM.
  """

  is_terminated = False

  def ask(self, number: int) -> None:
    """Asks the run to stop; of several signals the first one counts."""
    if not self.is_set():
      self.is_terminated = number == signal.SIGTERM
      self.set()


@contextlib.contextmanager
def catch_signals() -> Iterator[Stop]:
  """Sets the event on the first SIGINT or SIGTERM; the second leaves at once.

  Python runs a handler between two of its own instructions, so not while a
  step is computed or compiled. The system also writes a signal's number to a
  socket, where a thread reads it at once. Outside the main thread, which alone
  gets signals, nothing is caught.
  """
  stop = Stop()
  if threading.current_thread() is not threading.main_thread():
    yield stop
    return
  reader, writer = socket.socketpair()
  writer.setblocking(False)
  watcher = threading.Thread(target=_watch, args=(reader, stop), daemon=True)
  watcher.start()
  before = {number: signal.getsignal(number) for number in _SIGNALS}
  descriptor = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
  seen: list[int] = []

  def handle(number: int, _: object) -> None:
    if seen:  # the second one
      signal.signal(number, before[signal.Signals(number)])
      signal.raise_signal(number)
    seen.append(number)
    stop.ask(number)

  for number in _SIGNALS:
    signal.signal(number, handle)
  try:
    yield stop
  finally:
    for number, handler in before.items():
      signal.signal(number, handler)
    signal.set_wakeup_fd(descriptor)
    writer.close()  # ends the watcher
    watcher.join()
    reader.close()


def _watch(reader: socket.socket, stop: Stop) -> None:
  """Reads the numbers of signals until the other end is closed."""
  caught = 0
  while byte := reader.recv(1):
    if byte[0] not in _SIGNALS:
      continue
    caught += 1
    if caught == 1:
      stop.ask(byte[0])
      name = signal.Signals(byte[0]).name
      _log.info(
        '%s: saving and leaving after the step under way; a second one leaves '
        'at once, with the last checkpoint',
        name,
      )
    elif not hasattr(builtins, '__IPYTHON__'):  # a notebook's kernel lives on
      os.write(2, b'left at once; the last checkpoint is kept\n')
      kind = Terminated if stop.is_terminated else Interrupted
      os._exit(kind.status)
