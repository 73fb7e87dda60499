"""Rebuilds the inputs of the golden figures, as their README describes.

The figures come from an independent float64 implementation. They are read from
`$MODA_GOLDEN_DIR`, else from `golden` beside this file.
"""

import itertools
import json
import math
import os
import pathlib

import jax
import numpy as np

_BESIDE = pathlib.Path(__file__).parent / 'golden'
SIZES = {'digits': (32, 32, 3), 'reviews': (5000,)}
CLASSES = {'digits': 10, 'reviews': 2}
PARTS = ('extractor', 'classifier', 'discriminator')


def files():
  folder = pathlib.Path(os.environ.get('MODA_GOLDEN_DIR', _BESIDE))
  return sorted(folder.glob('*.json'))


def read(path):
  return json.loads(path.read_text())


def noise(size, salt):
  """Returns `size` values in [-1, 1) by integer hashing."""
  x = np.arange(size, dtype=np.uint32) * np.uint32(2654435761)
  x += np.uint32(salt * 97531 % 2**32)
  x ^= x >> np.uint32(16)
  x *= np.uint32(2246822519)
  x ^= x >> np.uint32(13)
  return x / 2.0**31 - 1


def domain(net, index, batch):
  """Returns the inputs and labels of domain `index`."""
  size = SIZES[net]
  values = 0.5 + 0.5 * noise(batch * math.prod(size), 1000 + index)
  labels = (3 * np.arange(batch) + index) % CLASSES[net]
  return values.reshape(batch, *size), labels


def batch(figures, dtype):
  """Returns a training batch with all that any method may declare."""
  net, size, count = figures['net'], figures['batch'], figures['sources']
  domains = [domain(net, j, size) for j in range(count + 2)]
  inputs = [x.astype(dtype) for x, _ in domains]
  labels = [y.astype(np.int32) for _, y in domains]
  return {
    'source': {
      'weak': np.stack(inputs[:count]),
      'label': np.stack(labels[:count]),
    },
    'target': {
      'weak': inputs[count],
      'strong': inputs[count + 1],
      'label': labels[count],
    },
  }


def fill(params, dtype):
  """Returns golden start values for every parameter.

  Args:
    params: arrays or shapes. Several discriminators are stacked along a first
      axis of every array of `params['discriminator']`.
  """
  numbers = itertools.count(1)
  filled = {}
  for part in (part for part in PARTS if part in params):
    filled[part] = _fill_part(params[part], numbers, dtype)
  if 'beta' in params:
    filled['beta'] = np.asarray([0.1, 0.5, 0.9], dtype)
  return filled


def _fill_part(part, numbers, dtype):
  heads = _count_heads(part)
  filled = {name: [] for name in sorted(part)}
  for _ in range(heads or 1):
    for name in filled:
      shapes = {
        kind: array.shape[1:] if heads else array.shape
        for kind, array in part[name].items()
      }
      filled[name].append(_layer(shapes, next(numbers), dtype))
  return {
    name: jax.tree.map(lambda *x: np.stack(x), *layers) if heads else layers[0]
    for name, layers in filled.items()
  }


def _count_heads(part):
  """Returns how many networks are stacked: their biases have two axes."""
  bias = part[min(part)]['bias'].shape
  return bias[0] if len(bias) == 2 else 0


def _layer(shapes, number, dtype):
  kernel = shapes['kernel']
  scale = math.sqrt(6 / math.prod(kernel[:-1]))
  values = scale * noise(math.prod(kernel), 2 * number)
  bias = 0.01 * noise(math.prod(shapes['bias']), 2 * number + 1)
  return {
    'kernel': values.reshape(kernel).astype(dtype),
    'bias': bias.astype(dtype),
  }


def norms(tree):
  """Returns L2 norms of all tensors under the golden figures' names."""
  found = {}
  for part, value in tree.items():
    if part == 'beta':
      found['beta'] = _norm(value)
      continue
    heads = _count_heads(value)
    for head in range(heads or 1):
      label = f'discriminator{head}' if part == 'discriminator' else part
      for i, name in enumerate(sorted(value)):
        for kind, array in value[name].items():
          norm = _norm(array[head] if heads else array)
          found[f'{label}.{i}.{kind}'] = norm
  return found


def _norm(array):
  return float(np.linalg.norm(np.asarray(array, np.float64)))
