"""Trains every method for some steps, as one of several processes.

  python tests/process_cases.py OUT CASE… [--coordinator=… …]

A case is `method/network`. What each process made and computed is written to
`OUT`.K.npz, where K is the number of the process.
"""

import contextlib
import sys

import jax
import numpy as np
import tiny
from absl import flags

from moda_jax.models import resnet
from moda_jax.training import devices as devices_lib
from moda_jax.training.experiment import Experiment
from moda_jax.training.processes import Joined

STEPS = 3
NETWORKS = {
  'tiny images': {},
  'digits': {'width': 0.03},
  'resnet50': {'width': 1 / 32},
  'reviews': {'width': 0.05},
  'mlp': {'width': 0.05},
}
_COORDINATOR = flags.DEFINE_string('coordinator', None, '')
_PROCESSES = flags.DEFINE_integer('processes', None, '')
_PROCESS = flags.DEFINE_integer('process', None, '')


def make_config(method, network):
  values = {
    name: value
    for name, value in tiny.VALUES.items()
    if name in vars(tiny.make_options(method)) and name != 'tau'
  }
  if 'tau' in vars(tiny.make_options(method)):
    values['tau'] = 0.1
  return tiny.make_run_config(
    method=method,
    network=network,
    steps=STEPS,
    eval_batch_size=10,
    **NETWORKS[network],
    **values,
  )


def make_data(network):
  if network in ('reviews', 'mlp'):
    return tiny.make_sparse_domains()
  return tiny.make_domains()


def run(method, network):
  """Returns batches, metrics, parameters and accuracies, by name."""
  config = make_config(method, network)
  devices = devices_lib.choose_devices(config.data.batch_size)
  experiment = Experiment(config, make_data(network), devices)
  state = jax.tree.map(tiny.in_float64, experiment.initial_state)
  state = devices_lib.replicate(state, devices)
  found = {}
  for step, batch in enumerate(experiment.make_batches(0)):
    record(found, f'batch/{step}', own_rows(batch, devices))
    state, metrics = experiment.train_step(state, batch)
    record(found, f'metrics/{step}', metrics)
  state = experiment.evaluator.observe_sources(state)
  record(found, 'state', state)
  record(found, 'accuracy', experiment.evaluator.accuracies(state))
  record(found, 'judged', experiment.evaluator.judge(state))
  return found


def own_rows(batch, devices):
  """Returns the examples of this process, `[…, B, …]` as if on one device."""
  if devices == 1:
    return batch

  def join(x, axis):
    shards = sorted(
      x.addressable_shards, key=lambda shard: shard.index[0].start
    )
    return np.concatenate([shard.data[0] for shard in shards], axis=axis)

  return {
    'source': {k: join(x, 1) for k, x in batch['source'].items()},
    'target': {k: join(x, 0) for k, x in batch['target'].items()},
  }


def record(found, prefix, tree):
  for path, leaf in jax.tree.leaves_with_path(jax.device_get(tree)):
    found[f'{prefix}{jax.tree_util.keystr(path)}'] = np.asarray(leaf)


def main():
  _, out, *cases = flags.FLAGS(sys.argv)
  resnet.BLOCKS = (1, 1, 1, 1)  # one of each kind: quick to compile
  where = (_COORDINATOR.value, _PROCESSES.value, _PROCESS.value)
  with Joined(*where) if where[0] else contextlib.nullcontext():
    for case in cases:
      found = run(*case.split('/'))
      name = f'{out}.{case.replace("/", ".")}.{jax.process_index()}.npz'
      np.savez(name, **found)
      print(f'{case} done', flush=True)


if __name__ == '__main__':
  main()
