"""What a run says while it trains: averages, a line, a warning, a stop."""

import logging
import math
import time
from typing import Any

import jax
import numpy as np

from moda_jax.errors import NonFiniteError

_log = logging.getLogger(__name__)
_COLLAPSED = 0.98


class MetricsBuffer:
  """Keeps the steps' metrics on the device until they are logged."""

  def __init__(self):
    self._steps: list[tuple[int, dict[str, jax.Array]]] = []

  def add(self, step: int, metrics: dict[str, jax.Array]) -> None:
    """Takes the metrics of `step`, without waiting for them."""
    self._steps.append((step, metrics))

  def average(self) -> dict[str, float]:
    """Returns the means since the last call; refuses values not finite."""
    steps, self._steps = self._steps, []
    if not steps:
      return {}
    fetched = jax.device_get([metrics for _, metrics in steps])
    for (step, _), metrics in zip(steps, fetched, strict=True):
      _check_finite(step, metrics)
    return {
      name: float(np.mean([metrics[name] for metrics in fetched]))
      for name in sorted(fetched[0])
    }


def _check_finite(step: int, metrics: dict[str, Any]) -> None:
  broken = [name for name, x in metrics.items() if not np.isfinite(x).all()]
  if broken:
    # The terms tell more than the sum and the gradient that they spoil.
    parts = [name for name in broken if name not in ('loss', 'gradient_norm')]
    values = ', '.join(f'{n} = {metrics[n]}' for n in sorted(parts or broken))
    raise NonFiniteError(f'Not finite at step {step}: {values}.')


class Progress:
  """Measures speed, writes the progress line, watches the source weights."""

  def __init__(self, step: int, total_steps: int, images_per_step: int):
    self._step = step
    self._total = total_steps
    self._images = images_per_step
    self._since = time.monotonic()
    self._warned = False

  def measure(self, step: int) -> dict[str, float]:
    """Returns the speed since the last measure, by name."""
    seconds = max(time.monotonic() - self._since, 1e-9)
    rate = (step - self._step) / seconds
    self._step = step
    return {'steps_per_second': rate, 'images_per_second': rate * self._images}

  def resume(self) -> None:
    """Begins to measure anew: what passed since the measure does not count."""
    self._since = time.monotonic()

  def report(self, step: int, metrics: dict[str, float]) -> None:
    """Logs the line for `metrics`, speed and time left included."""
    rate = metrics['steps_per_second']
    _log.info(
      '%s  %.0f images/s  ETA %s',
      progress_line(step, self._total, metrics),
      metrics['images_per_second'],
      format_duration((self._total - step) / rate),
    )
    self._watch_alpha(metrics)

  def _watch_alpha(self, metrics: dict[str, float]) -> None:
    alpha = select(metrics, 'alpha/')
    if self._warned or len(alpha) < 2:
      return
    name, largest = max(alpha.items(), key=lambda item: item[1])
    if largest > _COLLAPSED:
      self._warned = True
      _log.warning(
        'The source weights have collapsed: α of %s is %.3f, and the other '
        'sources are hardly learned from. Remedies: a smaller rate for β '
        '(config.beta_rate), equal weights for the first steps '
        '(config.alpha_hold), a larger config.mu_s, or method=moda_fm_floored.',
        name,
        largest,
      )


def select(metrics: dict[str, float], prefix: str) -> dict[str, float]:
  """The entries under `prefix`, without it."""
  return {
    k[len(prefix) :]: v for k, v in metrics.items() if k.startswith(prefix)
  }


def progress_line(step: int, total: int, metrics: dict[str, float]) -> str:
  """Step, losses, share above τ and source weights in one line."""
  parts = [f'step {step:>{len(str(total))}}/{total}']
  parts.append(f'loss {metrics["loss"]:.3f}')
  for name in ('class', 'discriminator', 'consistency'):
    value = metrics.get(name, _mean_over_sources(metrics, name))
    if value is not None:
      parts.append(f'{name} {value:.3f}')
  if 'kept' in metrics:
    parts.append(f'above τ {100 * metrics["kept"]:.0f} %')
  alpha = select(metrics, 'alpha/')
  if alpha:
    parts.append('α ' + ' '.join(f'{k} {v:.2f}' for k, v in alpha.items()))
  if 'target/accuracy' in metrics:
    shown = format_accuracy(
      metrics['target/accuracy'], metrics.get('target/accuracy_sd')
    )
    parts.append(f'target accuracy {shown}')
  return '  '.join(parts)


def _mean_over_sources(metrics: dict[str, float], name: str) -> float | None:
  """Of a term that is told by source alone; None where there is none."""
  values = [v for k, v in select(metrics, f'{name}/').items() if '/' not in k]
  return float(np.mean(values)) if values else None


def format_accuracy(accuracy: float, deviation: float | None = None) -> str:
  """`0.809` to `80.90 %`, and with a deviation to `80.90 ± 1.10 %`."""
  if deviation is None:
    return f'{100 * accuracy:.2f} %'
  return f'{100 * accuracy:.2f} ± {100 * deviation:.2f} %'


def format_duration(seconds: float) -> str:
  """`75` to `1m15s`."""
  if not math.isfinite(seconds):
    return '?'
  minutes, seconds = divmod(round(seconds), 60)
  hours, minutes = divmod(minutes, 60)
  if hours:
    return f'{hours}h{minutes:02d}m'
  return f'{minutes}m{seconds:02d}s' if minutes else f'{seconds}s'
