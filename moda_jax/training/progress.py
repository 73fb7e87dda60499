"""What a run says while it trains: averages, a line, a warning, a stop."""

import collections
import logging
import math
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from moda_jax.errors import NonFiniteError
from moda_jax.objectives import metrics as names
from moda_jax.objectives.method import Method
from moda_jax.training.devices import STEPS_UNDER_WAY
from moda_jax.training.display import Bar
from moda_jax.training.evaluation import ACCURACY, DEVIATION

_log = logging.getLogger(__name__)
STEPS_PER_SECOND = 'steps_per_second'
IMAGES_PER_SECOND = 'images_per_second'


class MetricsBuffer:
  """Keeps the steps' metrics on the device until they are logged.

  Attributes:
    skipped: how many steps have been left out since the run began.
  """

  def __init__(
    self,
    unlogged: dict[str, Any] | None = None,
    max_skipped: int | None = None,
  ):
    """Begins empty, or with what a stopped run had not logged.

    Args:
      unlogged: what `to_unlogged` returned.
      max_skipped: how many steps may be left out, where some may; None where
        a value that is not finite is refused in any case.
    """
    unlogged = unlogged or {}
    self.skipped: int = unlogged.get('skipped', 0)
    self._max_skipped = max_skipped
    self._steps: list[tuple[int, dict[str, jax.Array]]] = []
    self._fetched = [
      (step, {name: np.asarray(x, jnp.dtype(t)) for name, (t, x) in m.items()})
      for step, m in unlogged.get('steps', [])
    ]

  def add(self, step: int, metrics: dict[str, jax.Array]) -> None:
    """Takes the metrics of `step`; waits until few steps are under way.

    Dispatch would otherwise run far ahead of execution, and a step under way
    holds its batch and its results in memory.
    """
    self._steps.append((step, metrics))
    if len(self._steps) > STEPS_UNDER_WAY:
      jax.block_until_ready(self._steps[-1 - STEPS_UNDER_WAY][1])

  def average(self) -> dict[str, float]:
    """Returns the means since the last call; refuses values not finite."""
    self._fetch()
    fetched = [metrics for _, metrics in self._fetched]
    self._fetched = []
    means = {
      name: float(np.mean([metrics[name] for metrics in fetched]))
      for name in (sorted(fetched[0]) if fetched else ())
    }
    if self._max_skipped is not None:
      means[names.SKIPPED] = float(self.skipped)
    return means

  def to_unlogged(self) -> dict[str, Any]:
    """Returns what a checkpoint must keep for the averages to go on.

    Every bit is kept, so that the next line of a run that was stopped is that
    of one that was not.
    """
    self._fetch()
    steps = [
      [step, {k: [str(x.dtype), x.tolist()] for k, x in metrics.items()}]
      for step, metrics in self._fetched
    ]
    return {'skipped': self.skipped, 'steps': steps}

  def _fetch(self) -> None:
    """Brings metrics from the device; refuses or counts what is not finite."""
    steps, self._steps = self._steps, []
    fetched = jax.device_get([metrics for _, metrics in steps])
    for (step, _), metrics in zip(steps, fetched, strict=True):
      metrics = {name: np.asarray(x) for name, x in metrics.items()}
      if np.any(metrics.pop(names.SKIPPED, False)):
        self._skip(step, metrics)
      else:
        _check_finite(step, metrics)
        self._fetched.append((step, metrics))

  def _skip(self, step: int, metrics: dict[str, np.ndarray]) -> None:
    self.skipped += 1
    most = self._max_skipped or 0
    try:
      _check_finite(step, metrics)
    except NonFiniteError as error:
      if self.skipped > most:
        raise NonFiniteError(
          f'{error} {self.skipped} steps have been skipped, and '
          f'config.run.max_skipped = {most}.'
        ) from None
      _log.warning('%s Skipped; %d of at most %d.', error, self.skipped, most)


_SUMS = (names.LOSS, names.GRADIENT_NORM)


def _check_finite(step: int, metrics: dict[str, Any]) -> None:
  broken = [name for name, x in metrics.items() if not np.isfinite(x).all()]
  if broken:
    # The terms tell more than the sum and the gradient that they spoil.
    parts = [name for name in broken if name not in _SUMS]
    values = ', '.join(f'{n} = {metrics[n]}' for n in sorted(parts or broken))
    raise NonFiniteError(f'Not finite at step {step}: {values}.')


_FIRST, _EARLY = 1, 10  # steps of this process that are told of
_AHEAD = 2  # steps asked for beyond the one that the bar shows


class Progress:
  """Measures speed, writes the progress line, passes on a method's warning.

  The first step, for which programs are compiled, is not part of the speed.
  """

  def __init__(
    self,
    method: Method,
    step: int,
    total_steps: int,
    images_per_step: int,
    bar: Bar | None = None,
  ):
    self._method = method
    self._start = self._step = step
    self._total = total_steps
    self._images = images_per_step
    self._bar = bar or Bar(total_steps, shown=False)
    self._since = time.monotonic()
    self._rate = 0.0
    self._warned = False
    self._asked: collections.deque[tuple[int, Any]] = collections.deque()

  def advance(
    self, step: int, metrics: dict[str, jax.Array], reported: bool
  ) -> None:
    """Counts a step; tells of the first and the tenth.

    Args:
      step: that has been taken.
      metrics: of the step, on the device.
      reported: whether a line is logged of it anyway.
    """
    taken = step - self._start
    if taken == _FIRST or (taken == _EARLY and not reported):
      # Waits for the step: nothing else tells when it has been taken.
      fetched = jax.device_get(metrics)
      values = {name: float(np.mean(x)) for name, x in fetched.items()}
      values |= self.measure(step)
      if not reported:
        self._log_line(step, values)
      self.resume()
    if self._bar.is_shown:
      self._advance_bar(step, metrics)

  def _advance_bar(self, step: int, metrics: dict[str, jax.Array]) -> None:
    """Moves the bar to a step that has been taken, not just asked for."""
    self._asked.append((step, metrics[names.LOSS]))
    if len(self._asked) > _AHEAD:
      taken, loss = self._asked.popleft()
      jax.block_until_ready(loss)
      self._bar.advance(taken)

  def measure(self, step: int) -> dict[str, float]:
    """Returns the speed since the last measure, by name."""
    seconds = max(time.monotonic() - self._since, 1e-9)
    if step > self._step:  # else it has been measured already
      self._rate = (step - self._step) / seconds
    self._step = step
    return {
      STEPS_PER_SECOND: self._rate,
      IMAGES_PER_SECOND: self._rate * self._images,
    }

  def resume(self) -> None:
    """Begins to measure again: what passed since the measure does not count."""
    self._since = time.monotonic()

  def report(self, step: int, metrics: dict[str, float]) -> None:
    """Logs the line for `metrics`, speed and time left included.

    Where there is a bar, the line is put behind it, and only those with an
    accuracy are kept.
    """
    line = progress_line(self._method, step, self._total, metrics)
    self._asked.clear()  # their metrics have been waited for
    self._bar.advance(step)
    self._bar.describe(line.split('  ', 1)[1])
    if ACCURACY in metrics or not self._bar.is_shown:
      self._log_line(step, metrics)
    silent = self._warned or names.LOSS not in metrics
    warning = '' if silent else self._method.find_trouble(metrics)
    if warning:
      self._warned = True
      _log.warning('%s', warning)

  def _log_line(self, step: int, metrics: dict[str, float]) -> None:
    line = progress_line(self._method, step, self._total, metrics)
    rate = metrics[STEPS_PER_SECOND]
    if step - self._start == _FIRST:
      taken = format_duration(1 / rate)
      _log.info('%s  compiled and taken in %s', line, taken)
      return
    left = format_duration((self._total - step) / rate)
    _log.info(
      '%s  %.0f images/s  ETA %s', line, metrics[IMAGES_PER_SECOND], left
    )


def progress_line(
  method: Method, step: int, total: int, metrics: dict[str, float]
) -> str:
  """Returns step, losses, what the method adds, and accuracy in one line."""
  parts = [f'step {step:>{len(str(total))}}/{total}']
  if names.LOSS not in metrics:
    return f'{parts[0]}  no step since the last line was finite'
  parts.append(f'loss {metrics[names.LOSS]:.3f}')
  for name in (names.CLASS, names.DISCRIMINATOR):
    value = metrics.get(name, _mean_over_sources(metrics, name))
    if value is not None:
      parts.append(f'{name} {value:.3f}')
  parts += method.describe_progress(metrics)
  if ACCURACY in metrics:
    shown = format_accuracy(metrics[ACCURACY], metrics.get(DEVIATION))
    parts.append(f'target accuracy {shown}')
  return '  '.join(parts)


def _mean_over_sources(metrics: dict[str, float], name: str) -> float | None:
  """Returns the mean of a term that is logged by source; None without it."""
  values = [v for k, v in names.select(metrics, name).items() if '/' not in k]
  return float(np.mean(values)) if values else None


def format_accuracy(accuracy: float, deviation: float | None = None) -> str:
  """Formats 0.809 as `80.90 %`, with a deviation as `80.90 ± 1.10 %`."""
  if deviation is None:
    return f'{100 * accuracy:.2f} %'
  return f'{100 * accuracy:.2f} ± {100 * deviation:.2f} %'


def format_duration(seconds: float) -> str:
  """Formats 75 seconds as `1m15s`."""
  if not math.isfinite(seconds):
    return '?'
  minutes, seconds = divmod(round(seconds), 60)
  hours, minutes = divmod(minutes, 60)
  if hours:
    return f'{hours}h{minutes:02d}m'
  return f'{minutes}m{seconds:02d}s' if minutes else f'{seconds}s'
