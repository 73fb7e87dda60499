"""The peak memory of a training step, with and without `remat`.

  python -m experiments.benchmark_memory --config=configs/office31.py:webcam

Each takes two steps in a process of its own, on random images in the config's
size, network and batch. Reported are the bytes that the backward pass is handed
by the forward pass, which no compiler has a part in; those that XLA sets aside
beside parameters and batch; and the growth of the process from before the first
step.
"""

import multiprocessing
import resource
import time
from typing import Any

import ml_collections
import numpy as np
from absl import flags
from ml_collections import config_flags

from moda_jax import cli
from moda_jax.errors import UserError

_CLASSES = 31
_IMAGES = 32  # a domain
_GIBIBYTE = 2**30


def measure(config: ml_collections.ConfigDict, remat: bool) -> dict[str, float]:
  """Returns GiB by name and the seconds of the second step."""
  import jax

  from moda_jax.data.domains import Domains
  from moda_jax.training.experiment import Experiment

  config.remat, config.pretrained, config.frozen_stages = remat, '', 0
  target = _make_domain(config.target, config.image_size)
  sources = tuple(_make_domain(s, config.image_size) for s in config.sources)
  experiment = Experiment(config, Domains(sources, target, target), devices=1)
  state, batch = experiment.initial_state, next(experiment.make_batches(0))
  before = _peak()
  step = experiment.train_step.lower(state, batch).compile()
  kept = _count_kept(experiment.method, state, batch)
  state, _ = jax.block_until_ready(step(state, batch))
  start = time.perf_counter()
  jax.block_until_ready(step(state, batch))
  return {
    'kept': kept / _GIBIBYTE,
    'XLA': step.memory_analysis().temp_size_in_bytes / _GIBIBYTE,
    'process': _peak() - before,
    'seconds': time.perf_counter() - start,
  }


def _count_kept(method: Any, state: Any, batch: Any) -> int:
  """The bytes of what the forward pass keeps, parameters not counted."""
  import jax

  from moda_jax.training.step import as_float

  def run_forward(params: Any) -> Any:
    def loss(params: Any) -> jax.Array:
      rng = jax.random.key(0)
      return method.loss(
        params, state.method_state, as_float(batch), rng, state.step
      )[0]

    return jax.vjp(loss, params)[1]  # a tree of what it keeps

  kept = jax.tree.leaves(jax.eval_shape(run_forward, state.params))
  params = jax.tree.leaves(state.params)
  return sum(x.size * x.dtype.itemsize for x in kept) - sum(
    x.nbytes for x in params
  )


def _make_domain(name: str, size: int) -> object:
  from moda_jax.data.domains import Domain

  rng = np.random.default_rng(0)
  images = rng.integers(0, 256, (_IMAGES, size, size, 3), np.uint8)
  labels = np.arange(_IMAGES, dtype=np.int32) % _CLASSES
  return Domain(
    name, 'random', images, labels, tuple(str(i) for i in range(_CLASSES))
  )


def _peak() -> float:
  kibibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
  return kibibytes * 1024 / _GIBIBYTE


def main() -> None:
  """Measures both and prints."""
  config = _CONFIG.value
  if config.image_size < 1 or config.seeds != 1:
    raise UserError(
      f'config.image_size = {config.image_size}, config.seeds = '
      f'{config.seeds}: measured are images of the size that the config '
      'says, 1 or more, and one seed.'
    )
  context = multiprocessing.get_context('spawn')
  for remat in (False, True):
    with context.Pool(1) as pool:
      found = pool.apply(measure, (config, remat))
    print(
      f'remat={str(remat).lower()}: kept for the backward pass '
      f'{found["kept"]:.2f} GiB, XLA {found["XLA"]:.2f} GiB, process '
      f'+{found["process"]:.2f} GiB, {found["seconds"]:.1f} s a step'
    )


if __name__ == '__main__':
  _CONFIG = config_flags.DEFINE_config_file('config', None, 'The experiment.')
  flags.mark_flags_as_required(['config'])
  cli.run(main)
