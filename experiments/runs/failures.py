"""What went wrong in runs that are trained side by side, in threads."""

import contextlib
import os
import pathlib
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence

from moda_jax.errors import CommandEnd, Interrupted, UserError


class Failures:
  """Why parts of the work failed, and whether all of it is to stop.

  Attributes:
    stop: set when the work was interrupted; nothing more may start then.
  """

  def __init__(self):
    self.stop = threading.Event()
    self._names: dict[str, list[str]] = {}  # by reason

  @contextlib.contextmanager
  def collect(self, name: str, log: pathlib.Path) -> Iterator[None]:
    """Keeps what goes wrong within for `check`; says at once that it has.

    Args:
      name: of this part of the work.
      log: where more about it may be read.
    """
    try:
      yield
    except Interrupted:
      self.stop.set()
    except Exception as error:  # anything: a thread's end would hide it
      reason = str(error)
      if not isinstance(error, CommandEnd | OSError):
        traceback.print_exc()
        reason = f'{type(error).__name__}: {error}'
      self._names.setdefault(reason, []).append(name)
      where = f'; see {log}' if os.path.exists(log) else ''
      print(f'{name} failed{where}', file=sys.stderr, flush=True)

  def check(self) -> None:
    """Raises one error with every reason, once, if anything failed."""
    if self._names:
      raise UserError(self.describe())

  def describe(self) -> str:
    """Returns a paragraph for each reason."""
    return '\n'.join(
      f'{names[0]}{_and_others(names)} failed: {reason}'
      for reason, names in self._names.items()
    )


def _and_others(names: Sequence[str]) -> str:
  return f' and {len(names) - 1} more' if len(names) > 1 else ''
