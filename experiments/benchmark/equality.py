"""Checks that the twins compute what we compute: loss and gradients."""

import pathlib

import numpy as np

from experiments.benchmark import settings
from experiments.benchmark.ours import Ours
from experiments.benchmark.twin_client import Twin

TWINS = ('as written', 'tuned')
TOLERANCE = 1e-4  # relative, in float64; float32's rounding exceeds it
LossAndGradients = tuple[float, dict[str, np.ndarray]]


def check(
  case: settings.Case, python: str, folder: pathlib.Path
) -> dict[str, dict[str, float | str]]:
  """Compares all on the same weights and batch.

  Every term of the loss has a weight for it, all target samples count, and
  dropout is at rate 0: what is random cannot be the same.

  Args:
    case: what is trained.
    python: of PyTorch's environment.
    folder: for the arrays that travel.

  Returns:
    By the twin's name, the relative difference of the losses, the largest one
    of a gradient, and of which: the norm of an array's difference over the norm
    of the array.
  """
  config = case.checked_config
  domains = settings.make_domains(config, case.family, case.examples)
  setting = settings.describe_for_twin(config, domains)
  ours = Ours(config, domains)
  expected = ours.loss_and_gradients()
  found = {}
  for name in TWINS:
    with Twin(python, name, setting) as twin:
      twin.load(ours, folder)
      found[name] = _compare(twin.loss_and_gradients(folder), expected)
  return found


def _compare(
  found: LossAndGradients, expected: LossAndGradients
) -> dict[str, float | str]:
  (loss, grads), (expected_loss, expected_grads) = found, expected
  if set(grads) != set(expected_grads):
    unequal = sorted(set(grads) ^ set(expected_grads))
    raise ValueError(f'one of the two has no gradients of {unequal}')
  differences = {
    name: float(np.linalg.norm(grads[name] - grad) / np.linalg.norm(grad))
    for name, grad in expected_grads.items()
  }
  largest = max(differences, key=differences.get)
  return {
    'loss': abs(loss - expected_loss) / abs(expected_loss),
    'gradient': differences[largest],
    'of': largest,
  }


def require(found: dict[str, dict[str, float | str]]) -> None:
  """Ends the benchmark where a twin computes something else."""
  for name, each in found.items():
    if not all(each[key] < TOLERANCE for key in ('loss', 'gradient')):
      raise AssertionError(f'the twin {name} computes something else: {each}')
