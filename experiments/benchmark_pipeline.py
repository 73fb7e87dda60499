"""What the input pipeline costs: the train step fed live or by a kept batch.

  python -m experiments.benchmark_pipeline \
    --config=configs/mini.py:mnistm,width=1,batch_size=8

Both take turns in one process, so that a busy machine is busy for both. The
ratio is the median over the rounds of live time by kept time.
"""

import itertools
import statistics
import time
from collections.abc import Iterator

import jax
from absl import flags
from ml_collections import config_flags

from moda_jax import cli
from moda_jax.training.experiment import Experiment

_CONFIG = config_flags.DEFINE_config_file('config', None, 'The experiment.')
_ROUNDS = flags.DEFINE_integer('rounds', 6, 'Turns of each.', lower_bound=1)
_WARM_UP = 2
_STEPS = flags.DEFINE_integer('turn', 40, 'Steps a turn.', lower_bound=1)


def main() -> None:
  """Measures and prints."""
  config = _CONFIG.value
  with config.unlocked():
    config.epochs, config.steps = 0, 2**30
  experiment = Experiment(config)
  state, times = experiment.initial_state, {'live': [], 'kept': []}
  for round_ in range(_ROUNDS.value + 1):
    live = experiment.make_batches(round_ * 1000)
    # What was made ahead before the clock starts must not count as made live.
    kept = [next(live) for _ in range(_WARM_UP)][-1]
    state, live_seconds = _time_steps(experiment, state, live)
    del live  # or it goes on making batches while the other is measured
    feed = itertools.repeat(kept)
    state, kept_seconds = _time_steps(experiment, state, feed)
    if round_:  # the first one compiles
      times['live'].append(live_seconds / _STEPS.value)
      times['kept'].append(kept_seconds / _STEPS.value)
  for name, seconds in times.items():
    print(f'{name}: {1e3 * statistics.median(seconds):.1f} ms a step')
  ratios = [a / b for a, b in zip(times['live'], times['kept'], strict=True)]
  print(
    f'live / kept: median {statistics.median(ratios):.3f}, '
    f'from {min(ratios):.3f} to {max(ratios):.3f} over {len(ratios)} rounds'
  )


def _time_steps(
  experiment: Experiment, state: object, feed: Iterator[object]
) -> tuple[object, float]:
  jax.block_until_ready(state)
  start = time.perf_counter()
  for _ in range(_STEPS.value):
    state, _metrics = experiment.train_step(state, next(feed))
  jax.block_until_ready(state)
  return state, time.perf_counter() - start


if __name__ == '__main__':
  flags.mark_flags_as_required(['config'])
  cli.run(main)
