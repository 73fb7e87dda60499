"""Floating-point operations of a program's products and convolutions.

Counted in the program as it is written, before any compiler has seen it, so
that they are the same on every machine. What takes place element by element is
not counted: it is bound by memory.
"""

import math
from typing import Any

import jax


def count(jaxpr: Any) -> int:
  """Returns the operations; a multiplication and an addition are two."""
  return sum(_count_equation(equation) for equation in jaxpr.eqns)


def _count_equation(equation: Any) -> int:
  name = equation.primitive.name
  if name == 'dot_general':
    return _count_product(equation)
  if name == 'conv_general_dilated':
    return _count_convolution(equation)
  inner = [count(jaxpr) for jaxpr in _inner_programs(equation)]
  if name == 'cond':  # one of the branches, such as that of the platform
    return max(inner)
  return sum(inner) * equation.params.get('length', 1)  # of a scan


def _inner_programs(equation: Any) -> list[Any]:
  programs = []
  for value in equation.params.values():
    for item in value if isinstance(value, tuple | list) else (value,):
      if hasattr(item, 'eqns'):
        programs.append(item)
      elif hasattr(item, 'jaxpr'):
        programs.append(item.jaxpr)
  return programs


def _count_product(equation: Any) -> int:
  (contracted, _), _ = equation.params['dimension_numbers']
  shape = equation.invars[0].aval.shape
  depth = math.prod(shape[axis] for axis in contracted)
  return 2 * depth * equation.outvars[0].aval.size


def _count_convolution(equation: Any) -> int:
  """Counts the products with real values, not those with padding's zeros."""
  params = equation.params
  numbers = params['dimension_numbers']
  left, right = (x.aval.shape for x in equation.invars)
  out = equation.outvars[0].aval.shape
  channels = right[numbers.rhs_spec[1]]
  pairs = 1
  for axis, (low, _) in enumerate(params['padding']):
    pairs *= _count_pairs(
      left[numbers.lhs_spec[axis + 2]],
      right[numbers.rhs_spec[axis + 2]],
      out[numbers.out_spec[axis + 2]],
      params['window_strides'][axis],
      low,
      params['lhs_dilation'][axis],
      params['rhs_dilation'][axis],
    )
  rows, features = out[numbers.out_spec[0]], out[numbers.out_spec[1]]
  return 2 * pairs * channels * rows * features


def _count_pairs(
  size: int,
  kernel: int,
  outputs: int,
  stride: int,
  low: int,
  input_dilation: int,
  kernel_dilation: int,
) -> int:
  """Returns how often a kernel's entry meets an input's along one axis."""
  pairs = 0
  for output in range(outputs):
    for entry in range(kernel):
      place = output * stride + entry * kernel_dilation - low
      inside = 0 <= place < (size - 1) * input_dilation + 1
      pairs += inside and place % input_dilation == 0
  return pairs


def count_function(function: Any, *arguments: Any) -> int:
  """Returns the operations of a function of arguments like these."""
  return count(jax.make_jaxpr(function)(*arguments).jaxpr)
