"""A PyTorch twin in a process of its own, seen from this side."""

import json
import os
import pathlib
import subprocess
from typing import Any

import numpy as np

from experiments.benchmark.ours import Ours
from moda_jax.errors import UserError

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = ROOT / '.venv-torch' / 'bin' / 'python'
# What moda_jax.cli.keep_freed_memory does to this process, by glibc's names.
KEEP_FREED_MEMORY = {
  'MALLOC_MMAP_MAX_': '0',
  'MALLOC_TRIM_THRESHOLD_': str(2**31 - 1),
  'MALLOC_ARENA_MAX': '1',
}


class Twin:
  """One twin; close it when it is no longer needed.

  Attributes:
    about: its PyTorch's version and number of threads.
  """

  def __init__(
    self,
    python: str | os.PathLike,
    twin: str,
    setting: dict[str, Any],
    environment: dict[str, str] | None = None,
  ):
    """Starts the process and makes the twin.

    Args:
      python: of an environment that has PyTorch.
      twin: 'as written' or 'tuned'.
      setting: see `settings.describe_for_twin`.
      environment: further variables for the process.
    """
    self._process = subprocess.Popen(
      [os.fspath(python), '-m', 'experiments.benchmark.torch_worker'],
      cwd=ROOT,
      env=os.environ | (environment or {}),
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      text=True,
    )
    self.about = self.ask('build', twin=twin, setting=setting)

  def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
    """Sends a command and waits for its answer."""
    request = json.dumps({'command': command, **arguments})
    try:
      self._process.stdin.write(request + '\n')
      self._process.stdin.flush()
      answer = self._process.stdout.readline()
    except BrokenPipeError:
      answer = ''
    if not answer:
      raise UserError(
        f"PyTorch's process ended at '{command}'; what it said is above."
      )
    return json.loads(answer)

  def load(self, ours: Ours, folder: pathlib.Path, live: bool = False) -> None:
    """Takes over weights and kept batch, and the examples for live ones."""
    weights, batch = str(folder / 'weights.npz'), str(folder / 'batch.npz')
    ours.save_for_twin(weights, batch)
    self.ask('load', weights=weights, batch=batch)
    if live:
      ours.save_data_for_twin(str(folder / 'data.npz'))
      self.ask('load_data', data=str(folder / 'data.npz'))

  def time_steps(self, count: int, live: bool = False) -> float:
    """Takes steps; returns seconds per step."""
    return self.ask('steps', count=count, live=live)['seconds'] / count

  def loss_and_gradients(
    self, folder: pathlib.Path
  ) -> tuple[float, dict[str, np.ndarray]]:
    """Returns the loss of the kept batch and its gradients by our names."""
    path = str(folder / 'gradients.npz')
    loss = self.ask('check', gradients=path)['loss']
    with np.load(path) as arrays:
      return loss, dict(arrays)

  def close(self) -> None:
    """Ends the process."""
    self._process.stdin.close()
    self._process.stdout.close()
    self._process.wait()

  def __enter__(self) -> 'Twin':
    return self

  def __exit__(self, *_: object) -> None:
    self.close()


def check_python(python: str) -> None:
  """Refuses an interpreter that is not there."""
  if not pathlib.Path(python).is_file():
    raise UserError(
      f"--torch_python='{python}' is not there. `make benchmark` makes an "
      'environment with PyTorch for it; with --torch_python= nothing is '
      'compared with PyTorch.'
    )
