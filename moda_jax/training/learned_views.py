"""Weights of magnitudes, learned from probes; see `moda_jax.data.learned`.

They are part of the train state and change at the end of an epoch alone. So
batches can be made ahead until then, and each is a function of seed, step and
weights.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from moda_jax.data.learned import MAGNITUDES, SHAPE, to_probabilities
from moda_jax.data.operations import OPERATIONS
from moda_jax.data.options import ViewOptions
from moda_jax.objectives.method import Method

Weights = dict[str, jax.Array]  # 'weight', 'matched' and 'seen', all `SHAPE`


def first_weights() -> Weights:
  """Returns equal weights, and that nothing has been observed yet."""
  return {
    'weight': jnp.ones(SHAPE),
    'matched': jnp.zeros(SHAPE),
    'seen': jnp.zeros(SHAPE),
  }


class Learning(NamedTuple):
  """How weights of magnitudes are learned.

  Attributes:
    options: of the views.
    epoch_steps: how many steps they stay the same for.
  """

  options: ViewOptions
  epoch_steps: int

  def observe(
    self, method: Method, state: Any, probe: dict[str, jax.Array]
  ) -> Weights:
    """Returns the weights after a step.

    An observation is the probability of a probe's own class: 1 − ½ Σ |p − y|,
    as in the authors' program. A weight w follows each by w ← d w + (1 − d) ·
    observation, where all observations of an epoch count as their mean.

    Args:
      method: predicts.
      state: the train state before the step.
      probe: see `Views.probe`, 'input' as floats.
    """
    weights = state.view_weights
    p = method.predict(state.params, state.method_state, probe['input'])
    if method.predictors:
      p = p.mean(axis=0)
    match = jnp.take_along_axis(p, probe['label'][:, None], axis=1)  # [B, 1]
    cells = jax.nn.one_hot(probe['cells'], weights['seen'].size, dtype=p.dtype)
    sums = jnp.stack(
      [(match[..., None] * cells).sum((0, 1)), cells.sum((0, 1))]
    )
    if method.axis_name is not None:
      sums = jax.lax.psum(sums, method.axis_name)
    matched, seen = sums.reshape(2, *SHAPE).astype(weights['seen'].dtype)
    weights = weights | {
      'matched': weights['matched'] + matched,
      'seen': weights['seen'] + seen,
    }
    is_end = (state.step + 1) % self.epoch_steps == 0
    return jax.tree.map(
      lambda new, old: jnp.where(is_end, new, old),
      self._end_epoch(weights),
      weights,
    )

  def _end_epoch(self, weights: Weights) -> Weights:
    seen = weights['seen']
    mean = weights['matched'] / jnp.maximum(seen, 1)
    kept = self.options.learned_decay**seen
    zeros = jnp.zeros_like(seen)
    return {
      'weight': kept * weights['weight'] + (1 - kept) * mean,
      'matched': zeros,
      'seen': zeros,
    }

  def mean_magnitude(self, state: Any) -> jax.Array:
    """Returns the mean of the magnitudes that are drawn, of 30."""
    p = to_probabilities(state.view_weights['weight'], self.options)
    excluded = self.options.randaugment_exclude
    used = [i for i, name in enumerate(OPERATIONS) if name not in excluded]
    return (p @ jnp.array(MAGNITUDES, p.dtype))[jnp.array(used)].mean()

  def by_epoch(
    self,
    make_batches: Callable[[int, int, np.ndarray], Iterator[Any]],
    start: int,
    stop: int,
    read_state: Callable[[], Any],
  ) -> Iterator[Any]:
    """Yields the batches of steps `start` to `stop` − 1, epoch by epoch.

    Args:
      make_batches: from the first step, the one after the last, and the
        probabilities of magnitudes.
      start: the first step.
      stop: the one after the last.
      read_state: returns the train state after the steps whose batches were
        yielded.
    """
    while start < stop:
      end = min(stop, start + self.epoch_steps - start % self.epoch_steps)
      weight = jax.device_get(read_state().view_weights['weight'])
      weight = np.asarray(weight, np.float64)
      yield from make_batches(
        start, end, to_probabilities(weight, self.options)
      )
      start = end
