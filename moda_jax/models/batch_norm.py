"""BatchNorm that keeps the domains and views of a mini-batch apart."""

import math

import jax
import jax.numpy as jnp
from flax import linen as nn

from moda_jax.models.networks import at_least_float32

_MOMENTUM = 0.9  # what a running average keeps; PyTorch's 0.1


class BatchNorm(nn.Module):
  """Normalises every channel, in training within each group.

  In training `x` is `[G, B, H, W, C]`, or one group without its axis. Group g
  is normalised by the mean and variance of `x[g]`, over all devices of
  `axis_name`, as if it went through the network alone. The running averages
  take the statistics of all groups in their order, which in a method's step is
  that of the sources, then the target's weak view, then its strong one; each
  makes it `0.9 average + 0.1 statistic`. As in PyTorch the variance that they
  take is the unbiased one. Otherwise the averages normalise, whatever the axes.
  """

  epsilon: float
  axis_name: str | None = None

  @nn.compact
  def __call__(self, x: jax.Array, train: bool) -> jax.Array:
    channels = x.shape[-1:]
    scale = self.param('scale', nn.initializers.ones, channels)
    bias = self.param('bias', nn.initializers.zeros, channels)
    running_mean = self.variable('batch_stats', 'mean', jnp.zeros, channels)
    running_var = self.variable('batch_stats', 'var', jnp.ones, channels)
    y = at_least_float32(x)
    if train:
      mean, var, count = self._statistics(y)
      unbiased = var * (count / max(count - 1, 1))
      running_mean.value = _follow(running_mean.value, mean)
      running_var.value = _follow(running_var.value, unbiased)
    else:
      mean, var = running_mean.value, running_var.value
    y = (y - mean) * (jax.lax.rsqrt(var + self.epsilon) * scale) + bias
    return y.astype(x.dtype)

  def _statistics(self, x: jax.Array) -> tuple[jax.Array, jax.Array, int]:
    """Returns mean, biased variance `[G, 1, 1, 1, C]`, and values in each."""
    axes, count = (-4, -3, -2), math.prod(x.shape[-4:-1])
    moments = x.mean(axes, keepdims=True), (x**2).mean(axes, keepdims=True)
    if self.axis_name is not None:
      moments = jax.lax.pmean(moments, self.axis_name)
      count *= jax.lax.axis_size(self.axis_name)
    mean, mean_of_squares = moments
    return mean, jnp.maximum(mean_of_squares - mean**2, 0), count


def _follow(average: jax.Array, statistics: jax.Array) -> jax.Array:
  """Returns the running average `[C]` after the statistics of each group."""
  for statistic in statistics.reshape(-1, average.size):
    average = _MOMENTUM * average + (1 - _MOMENTUM) * statistic
  return average
