"""What the machine can do, and how near a step comes to it.

The bound of a step is the time of its products at the measured rate of a large
matrix product, plus the time of its parameters at the measured bandwidth: both
at once would be a lower bound that no training step can reach, since the
optimizer waits for the gradients.
"""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from experiments.benchmark.rounds import Turn, summarise
from experiments.benchmark.twin_client import Twin

SIZE = 2048  # of the square matrices
LENGTH = 2**25  # of the vectors, 128 MiB each: beyond every cache
PRODUCT, TRIAD = 'matrix product', 'triad'
# Parameters and both accumulators are read and written. Gradients count once:
# an optimizer that is fused with the backward pass need not read them back.
PASSES = 7
_FLOPS, _BYTES = 2 * SIZE**3, 3 * 4 * LENGTH


def make_turns(twin: Twin | None) -> dict[str, Turn]:
  """Returns contestants that measure seconds, by JAX and by PyTorch."""
  multiply = jax.jit(lambda a, b: a @ b)
  add = jax.jit(lambda x, y, _: x + 3 * y, donate_argnums=2)

  def time_product() -> float:
    a = jax.random.uniform(jax.random.key(0), (SIZE, SIZE))
    return _time(lambda: multiply(a, a))

  def time_triad() -> float:
    x, y, held = jnp.ones(LENGTH), jnp.ones(LENGTH), [jnp.ones(LENGTH)]

    def run() -> Any:
      held[0] = add(x, y, held[0])
      return held[0]

    return _time(run)

  turns = {f'{PRODUCT}, JAX': time_product, f'{TRIAD}, JAX': time_triad}
  if twin is not None:
    turns |= {
      f'{PRODUCT}, PyTorch': lambda: twin.ask('product', size=SIZE)['seconds'],
      f'{TRIAD}, PyTorch': lambda: twin.ask('triad', length=LENGTH)['seconds'],
    }
  return turns


def _time(run: Callable[[], Any]) -> float:
  jax.block_until_ready(run())
  start = time.perf_counter()
  jax.block_until_ready(run())
  return time.perf_counter() - start


def summarise_rates(figures: dict[str, list[float]]) -> dict[str, Any]:
  """Returns the rates; the better of the two programs' is the machine's."""
  rates = {}
  for name, amount in ((PRODUCT, _FLOPS), (TRIAD, _BYTES)):
    each = {
      key: summarise([amount / seconds for seconds in turns])
      for key, turns in figures.items()
      if key.startswith(name)
    }
    best = max(each, key=lambda key: each[key]['median'])
    rates[name] = {'best': each[best]['median'], 'by': best, 'each': each}
  return rates


def find_share(
  rates: dict[str, Any], flops: int, parameters: int, seconds: float
) -> dict[str, float]:
  """Returns the bound of a step in seconds, its parts, and the share reached.

  Args:
    rates: see `summarise_rates`.
    flops: of the step.
    parameters: of the networks, four bytes each.
    seconds: what the step takes.
  """
  traffic = PASSES * 4 * parameters
  products = flops / rates[PRODUCT]['best']
  memory = traffic / rates[TRIAD]['best']
  return {
    'flops': flops,
    'parameters': parameters,
    'bytes': traffic,
    'products_seconds': products,
    'memory_seconds': memory,
    'bound_seconds': products + memory,
    'share': (products + memory) / seconds,
  }
