"""What the input pipeline costs: the train step fed live or by a kept batch.

  python -m experiments.benchmark_pipeline \
    --config=configs/mini.py:mnistm,width=1,batch_size=8

Both take turns in one process, so that a busy machine is busy for both. The
ratio is the median over the rounds of live time by kept time.
"""

import statistics
import time
from collections.abc import Iterator

import jax
from absl import flags
from ml_collections import config_flags

from moda_jax import cli
from moda_jax.experiment import Experiment

_CONFIG = config_flags.DEFINE_config_file('config', None, 'The experiment.')
_ROUNDS = flags.DEFINE_integer('rounds', 10, 'Turns of each.', lower_bound=1)
_STEPS = flags.DEFINE_integer('turn', 10, 'Steps a turn.', lower_bound=1)


def main() -> None:
  """Measures and prints."""
  config = _CONFIG.value
  with config.unlocked():
    config.epochs, config.steps = 0, _STEPS.value * (_ROUNDS.value + 1) + 8
  experiment = Experiment(config)
  live = experiment.make_batches(0)
  kept = next(live)
  state = experiment.initial_state
  times = {'live': [], 'kept': []}
  for round_ in range(_ROUNDS.value + 1):
    for name, feed in {'live': live, 'kept': _repeat(kept)}.items():
      state, seconds = _time_steps(experiment, state, feed)
      if round_:  # the first one compiles
        times[name].append(seconds / _STEPS.value)
  for name, seconds in times.items():
    print(f'{name}: {1e3 * statistics.median(seconds):.1f} ms a step')
  ratios = [a / b for a, b in zip(times['live'], times['kept'], strict=True)]
  print(
    f'live / kept: median {statistics.median(ratios):.3f}, '
    f'from {min(ratios):.3f} to {max(ratios):.3f} over {len(ratios)} rounds'
  )


def _repeat(batch: object) -> Iterator[object]:
  while True:
    yield batch


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
