"""What a person watching sees: a bar in terminals and notebooks, or lines."""

import contextlib
import logging
import sys
from collections.abc import Iterator
from typing import Any

from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

from moda_jax import cli
from moda_jax.training import processes

_PACKAGE = 'moda_jax'


@contextlib.contextmanager
def show_log() -> Iterator[None]:
  """Shows the package's log to someone who watches and set up no logging."""
  package = logging.getLogger(_PACKAGE)
  # Libraries put handlers of their own at the root; only the level tells.
  wanted = package.isEnabledFor(logging.INFO)
  if package.handlers or wanted or not cli.is_watched():
    yield
    return
  handler = logging.StreamHandler(sys.stdout)
  handler.setFormatter(logging.Formatter('%(message)s'))
  level, propagates = package.level, package.propagate
  package.addHandler(handler)
  package.setLevel(logging.INFO)
  package.propagate = False
  try:
    yield
  finally:
    package.removeHandler(handler)
    package.setLevel(level)
    package.propagate = propagates


class Bar:
  """A bar of steps; without anyone who watches, nothing.

  It begins with the second step, so that what the first one compiles for is not
  part of the time left.
  """

  def __init__(self, total: int, shown: bool):
    self._total = total
    self._shown = shown
    self._bar: tqdm[Any] | None = None

  @property
  def is_shown(self) -> bool:
    """Whether there is a bar, so that fewer lines are needed."""
    return self._shown

  def advance(self, step: int) -> None:
    """Moves the bar to `step`."""
    if not self._shown:
      return
    if self._bar is None:
      self._bar = tqdm(
        total=self._total,
        initial=step,
        file=sys.stdout,
        unit='step',
        dynamic_ncols=True,
      )
    self._bar.update(step - self._bar.n)

  def describe(self, text: str) -> None:
    """Puts a text behind the bar."""
    if self._bar is not None:
      self._bar.set_postfix_str(text, refresh=False)

  def close(self) -> None:
    """Leaves the bar as it is."""
    if self._bar is not None:
      self._bar.close()


@contextlib.contextmanager
def open_bar(total: int) -> Iterator[Bar]:
  """Gives a bar that the log is written above of."""
  bar = Bar(total, cli.is_watched() and processes.is_first())
  with contextlib.ExitStack() as stack:
    if bar.is_shown:
      stack.enter_context(logging_redirect_tqdm([logging.getLogger(_PACKAGE)]))
    stack.callback(bar.close)
    yield bar
