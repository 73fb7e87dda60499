"""What several seeds in one program save: a step of all against single steps.

  python -m experiments.benchmark_seeds --seeds=5

Trains the networks of `configs/reviews.py` on made-up sparse reviews, so that
no data need be prepared. A step of all seeds and a step of a single one take
turns in one process, so that a busy machine is busy for both. The ratio is the
median over the rounds of the first by `seeds` times the second: below 1, all
at once is faster than one after the other.
"""

import statistics
import time
from typing import Any

import jax
import ml_collections
import numpy as np
import scipy.sparse
from absl import flags

from configs import reviews
from moda_jax import cli
from moda_jax.data.domains import Domain, Domains
from moda_jax.training.experiment import Experiment
from moda_jax.training.step import TrainState

_SEEDS = flags.DEFINE_integer('seeds', 5, 'How many.', lower_bound=2)
_METHOD = flags.DEFINE_string('method', 'moda_fm', 'What is trained.')
_ROUNDS = flags.DEFINE_integer('rounds', 10, 'Turns of each.', lower_bound=1)
_STEPS = flags.DEFINE_integer('turn', 5, 'Steps a turn.', lower_bound=1)
_REVIEWS, _FEATURES, _WORDS = 500, 5000, 80  # a domain; known; in a review


def main() -> None:
  """Measures and prints."""
  data, count = make_domains(), _SEEDS.value
  runs = {seeds: Experiment(make_config(seeds), data) for seeds in (count, 1)}
  states = {seeds: run.initial_state for seeds, run in runs.items()}
  feeds = {seeds: next(run.make_batches(0)) for seeds, run in runs.items()}
  times = {seeds: [] for seeds in runs}
  for round_ in range(_ROUNDS.value + 1):
    for seeds, run in runs.items():
      states[seeds], seconds = time_steps(run, states[seeds], feeds[seeds])
      if round_:  # the first one compiles
        times[seeds].append(seconds / _STEPS.value)
  for seeds, seconds in times.items():
    print(f'seeds={seeds}: {1e3 * statistics.median(seconds):.1f} ms a step')
  pairs = zip(times[count], times[1], strict=True)
  ratios = [together / (count * single) for together, single in pairs]
  print(
    f'all at once / one after the other: median '
    f'{statistics.median(ratios):.3f}, from {min(ratios):.3f} to '
    f'{max(ratios):.3f} over {len(ratios)} rounds'
  )


def make_config(seeds: int) -> ml_collections.ConfigDict:
  """The config of reviews, without its end."""
  argument = f'books,method={_METHOD.value},seeds={seeds},steps={2**30}'
  return reviews.get_config(argument)


def make_domains() -> Domains:
  """Four domains of random reviews, as sparse as real ones."""
  rng = np.random.default_rng(0)

  def make(name: str) -> Domain:
    words = rng.poisson(_WORDS / _FEATURES, (_REVIEWS, _FEATURES))
    inputs = scipy.sparse.csr_array(words.astype(np.float32))
    labels = rng.integers(0, 2, _REVIEWS).astype(np.int32)
    return Domain(name, 'random', inputs, labels, ('negative', 'positive'))

  target, *sources = map(make, ('books', 'dvd', 'electronics', 'kitchen'))
  return Domains(tuple(sources), target, target)


def time_steps(
  run: Experiment, state: TrainState, batch: Any
) -> tuple[TrainState, float]:
  """Takes the steps of a turn; returns the new state and the seconds."""
  jax.block_until_ready(state)
  start = time.perf_counter()
  for _ in range(_STEPS.value):
    state, _metrics = run.train_step(state, batch)
  jax.block_until_ready(state)
  return state, time.perf_counter() - start


if __name__ == '__main__':
  cli.run(main)
