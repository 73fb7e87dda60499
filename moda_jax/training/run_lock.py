"""A lock on a run's folder, which ends with the process that holds it."""

import errno
import fcntl
import logging
import os
import pathlib
import socket
from types import TracebackType
from typing import IO

import jax

from moda_jax.errors import UserError

_log = logging.getLogger(__name__)
_FILE = '.lock'
_HELD = (errno.EWOULDBLOCK, errno.EACCES)
_UNKNOWN = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK, errno.EINVAL)


class RunLock:
  """Keeps a second process from training in the same folder.

  The system holds the lock for the open file `.lock` and drops it when the
  process ends, however it ends; the file itself means nothing. It says who
  holds the lock. Reading the folder needs no lock.
  """

  def __init__(self, workdir: str | os.PathLike):
    """Describes the lock; nothing is locked yet."""
    self._folder = pathlib.Path(workdir)
    self._file: IO[str] | None = None

  def __enter__(self) -> 'RunLock':
    return self

  def __exit__(
    self,
    kind: type[BaseException] | None,
    error: BaseException | None,
    trace: TracebackType | None,
  ) -> None:
    self.release()

  @property
  def is_known(self) -> bool:
    """Whether a process has ever locked the folder."""
    return (self._folder / _FILE).exists()

  def take(self) -> None:
    """Takes the lock, unless this run has it already.

    Of several processes of a run the first one takes it.

    Raises:
      UserError: another process has it.
      OSError: the folder cannot be written to.
    """
    if self._file is not None or jax.process_index():
      return
    file = (self._folder / _FILE).open('a+')
    try:
      fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
      if error.errno in _HELD:
        holder = _read_holder(file)
        file.close()
        raise UserError(
          f"--workdir='{self._folder}' is in use: {holder} trains in it. "
          '--mode=evaluate and --mode=predict work meanwhile.'
        ) from None
      if error.errno not in _UNKNOWN:
        file.close()
        raise
      _log.warning(
        'the file system of %s has no locks: see to it that no other process '
        'trains in it',
        self._folder,
      )
    file.truncate(0)
    file.write(f'process {os.getpid()} on {socket.gethostname()}')
    file.flush()
    self._file = file

  def release(self) -> None:
    """Gives the lock back."""
    if self._file is not None:
      self._file.close()
      self._file = None


def _read_holder(file: IO[str]) -> str:
  file.seek(0)
  return file.read(200) or 'another process'
