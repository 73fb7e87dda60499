"""Parameters between PyTorch's order of axes and ours.

Ours are named by their path, `classifier/Dense_0/kernel`; convolutions are
[H, W, in, out], dense layers [in, out], and maps are flattened as [H, W, C].
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import nn

from experiments.benchmark.torch_networks import FlattenedLinear


def load(module: nn.Module, arrays: dict[str, np.ndarray]) -> None:
  """Sets every parameter of the module from arrays by our names."""
  names = {name for name, _, _ in _iter_parameters(module)}
  if names != set(arrays):
    raise ValueError(f'parameters differ: {sorted(names ^ set(arrays))}')
  with torch.no_grad():
    for name, layer, parameter in _iter_parameters(module):
      array = _from_ours(arrays[name], layer)
      parameter.copy_(torch.from_numpy(np.array(array)))


def gradients(module: nn.Module) -> dict[str, np.ndarray]:
  """Returns every parameter's gradient by our names, in our order of axes."""
  return {
    name: _to_ours(parameter.grad.numpy(), layer)
    for name, layer, parameter in _iter_parameters(module)
  }


def our_names(module: nn.Module) -> dict[str, nn.Parameter]:
  """Returns the parameters by our names."""
  return {name: p for name, _, p in _iter_parameters(module)}


def _iter_parameters(
  module: nn.Module,
) -> Iterator[tuple[str, nn.Module, nn.Parameter]]:
  for path, layer in module.named_modules():
    for kind, parameter in layer.named_parameters(recurse=False):
      if kind == 'weight':
        kind = 'scale' if isinstance(layer, nn.BatchNorm2d) else 'kernel'
      name = '/'.join([*path.split('.'), kind]) if path else kind
      yield name, layer, parameter


def _from_ours(array: np.ndarray, layer: nn.Module) -> np.ndarray:
  if array.ndim == 4:
    return array.transpose(3, 2, 0, 1)
  if array.ndim == 1:
    return array
  if isinstance(layer, FlattenedLinear):
    side, outputs = layer.side, array.shape[-1]
    maps = array.reshape(side, side, -1, outputs)  # [H, W, C, out]
    array = maps.transpose(2, 0, 1, 3).reshape(-1, outputs)
  return array.T


def _to_ours(array: np.ndarray, layer: nn.Module) -> np.ndarray:
  if array.ndim == 4:
    return array.transpose(2, 3, 1, 0)
  if array.ndim == 1:
    return array
  array = array.T
  if isinstance(layer, FlattenedLinear):
    side, outputs = layer.side, array.shape[-1]
    maps = array.reshape(-1, side, side, outputs)  # [C, H, W, out]
    array = maps.transpose(1, 2, 0, 3).reshape(-1, outputs)
  return array
