"""One twin in a process of its own, which does what its standard input says.

  .venv-torch/bin/python -m experiments.benchmark.torch_worker

Every line is a JSON object with a `command`, the name of a method of `Worker`,
and its arguments; every answer is one line too. Arrays travel as .npz files.
Between commands the process sleeps.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from experiments.benchmark import torch_arrays, torch_data
from experiments.benchmark.torch_twins import TWINS


class Worker:
  """A twin, its weights and its batches."""

  def build(self, twin: str, setting: dict[str, Any]) -> dict[str, Any]:
    """Makes the twin with random weights."""
    self._setting = setting
    self._twin = TWINS[twin](setting)
    return {'threads': torch.get_num_threads(), 'torch': torch.__version__}

  def load(self, weights: str, batch: str) -> dict[str, Any]:
    """Reads weights and the kept batch."""
    with np.load(weights) as arrays:
      torch_arrays.load(self._twin.networks, dict(arrays))
    with np.load(batch) as arrays:
      self._kept = self._lay_out(torch_data.split_kept(dict(arrays)))
      wide = torch_data.split_kept(dict(arrays), torch.float64)
      self._wide = self._lay_out(wide)
    return {}

  def load_data(self, data: str) -> dict[str, Any]:
    """Reads the examples that live batches are made of."""
    with np.load(data) as arrays:
      self._live = torch_data.make_batches(dict(arrays), self._setting)
    return {}

  def check(self, gradients: str) -> dict[str, Any]:
    """Writes the gradients of the kept batch in float64; returns its loss."""
    self._twin.networks.double()
    loss, _ = self._twin.loss(self._wide)
    loss.backward()
    np.savez(gradients, **torch_arrays.gradients(self._twin.networks))
    return {'loss': loss.item()}

  def steps(self, count: int, live: bool) -> dict[str, Any]:
    """Takes steps; returns the seconds of all."""
    start = time.perf_counter()
    for _ in range(count):
      batch = self._lay_out(next(self._live)) if live else self._kept
      self._twin.step(batch)
    return {'seconds': time.perf_counter() - start}

  def product(self, size: int) -> dict[str, Any]:
    """Returns the seconds of a product of square matrices."""
    a = torch.rand(size, size)
    made = torch.empty_like(a)
    return _time(lambda: torch.mm(a, a, out=made))

  def triad(self, length: int) -> dict[str, Any]:
    """Returns the seconds of x + 3 y for long vectors."""
    x, y, made = torch.ones(length), torch.ones(length), torch.ones(length)
    return _time(lambda: torch.add(x, y, alpha=3.0, out=made))

  def _lay_out(self, batch: dict[str, Any]) -> dict[str, Any]:
    return {
      'source': [self._twin.prepare(x) for x in batch['source']],
      'label': batch['label'],
      'weak': self._twin.prepare(batch['weak']),
      'strong': self._twin.prepare(batch['strong']),
    }


def _time(run: Callable[[], torch.Tensor]) -> dict[str, Any]:
  """Returns the seconds of the second of two runs."""
  run()
  start = time.perf_counter()
  run()
  return {'seconds': time.perf_counter() - start}


def main() -> None:
  """Answers commands until the standard input ends."""
  worker = Worker()
  for line in sys.stdin:
    request = json.loads(line)
    answer = getattr(worker, request.pop('command'))(**request)
    print(json.dumps(answer), flush=True)


if __name__ == '__main__':
  main()
