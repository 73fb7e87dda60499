"""What Orbax and TensorStore tell beside the error that they raise."""

import logging
import sys
import warnings
from collections.abc import Callable
from typing import Any

import absl.logging

_before: list[Callable[[Any], Any]] = []  # the hook that was there


class Quiet:
  """Leaves out stack traces of a failed save, which is told of by an error."""

  def begin(self) -> None:
    """Begins to leave them out."""
    pass_over_late_calls()
    absl.logging.get_absl_logger().addFilter(self.is_told)

  def end(self) -> None:
    """Ends it."""
    absl.logging.get_absl_logger().removeFilter(self.is_told)

  def is_told(self, record: logging.LogRecord) -> bool:
    """Filters Orbax's log: what is raised as well need not be logged."""
    return not (record.exc_info and 'orbax' in record.pathname)


def pass_over_late_calls() -> None:
  """Leaves out what TensorStore has to say to an Orbax that has given up.

  From now on: some reads and writes end long after the first one has failed.
  """
  if not _before:
    _before.append(sys.unraisablehook)
    sys.unraisablehook = _pass_on
    warnings.filterwarnings(
      'ignore', "coroutine 'async_serialize", category=RuntimeWarning
    )


def _pass_on(unraisable: Any) -> None:
  error = unraisable.exc_value
  # A read that was given up is ended as a generator is; Orbax raises anew.
  given_up = isinstance(getattr(error, '__cause__', None), GeneratorExit)
  if not given_up and str(error) != 'Event loop is closed':
    _before[0](unraisable)
