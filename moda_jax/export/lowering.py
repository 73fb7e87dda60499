"""A traced model in plain operations, for converters that know only those."""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.extend import core


def to_plain(
  function: Callable[[jax.Array], jax.Array], taken: jax.ShapeDtypeStruct
) -> Callable[[jax.Array], jax.Array]:
  """Returns the same function without what ONNX converters get wrong.

  Where platforms differ it takes the default: XLA's own convolution and pooling
  rather than what replaces them on CPUs. Calls, with gradients of their own or
  without, are written out.

  Args:
    function: of one array.
    taken: its input; the first axis may be symbolic.
  """
  traced = jax.make_jaxpr(function)(taken)

  def plain(x: jax.Array) -> jax.Array:
    (made,) = _evaluate(traced, x)
    return made

  return plain


def _evaluate(traced: core.ClosedJaxpr, *inputs: Any) -> list[Any]:
  jaxpr = traced.jaxpr
  values = dict(zip(jaxpr.constvars, traced.consts, strict=True))
  values |= dict(zip(jaxpr.invars, inputs, strict=True))

  def read(variable: Any) -> Any:
    is_literal = isinstance(variable, core.Literal)
    return variable.val if is_literal else values[variable]

  for equation in jaxpr.eqns:
    given = [read(variable) for variable in equation.invars]
    values |= zip(equation.outvars, _apply(equation, given), strict=True)
  return [read(variable) for variable in jaxpr.outvars]


def _apply(equation: core.JaxprEqn, given: list[Any]) -> Sequence[Any]:
  name, params = equation.primitive.name, equation.params
  if name == 'platform_index':
    return [params['platforms'].index(None)]  # `default`
  if name == 'cond' and isinstance(given[0], int):
    return _evaluate(params['branches'][given[0]], *given[1:])
  if name in _CALLS:
    return _evaluate(params[_CALLS[name]], *given)
  if name in _REPLACED:
    return [_REPLACED[name](*given, **params)]
  made = equation.primitive.bind(*given, **params)
  return made if equation.primitive.multiple_results else [made]


def _reshape(
  x: jax.Array, *, new_sizes: Any, dimensions: Any, sharding: Any
) -> jax.Array:
  """Permutes axes first, where `lax.reshape` would; jax2onnx forgets that."""
  del sharding
  x = x if dimensions is None else lax.transpose(x, dimensions)
  return lax.reshape(x, new_sizes)


def _pad(x: jax.Array, value: Any, *, padding_config: Any) -> jax.Array:
  """Concatenates margins; jax2onnx pads only arrays of known shapes."""
  for axis, (before, after, inside) in enumerate(padding_config):
    if inside or min(before, after) < 0:
      raise NotImplementedError('pad within an array or by less than nothing')
    parts = [x]
    for place, size in ((0, before), (2, after)):
      if size:
        shape = (*x.shape[:axis], int(size), *x.shape[axis + 1 :])
        parts.insert(place, lax.broadcast_in_dim(value, shape, ()))
    x = lax.concatenate(parts, axis) if len(parts) > 1 else x
  return x


def _pool(
  x: jax.Array,
  *,
  window_dimensions: Sequence[int],
  window_strides: Sequence[int],
  padding: Sequence[tuple[int, int]],
  base_dilation: Sequence[int],
  window_dilation: Sequence[int],
) -> jax.Array:
  """Takes the maximum of slices, one for each place in the window.

  jax2onnx makes it a pooling of four axes, which onnxruntime does not have.
  """
  if {*base_dilation, *window_dilation} != {1}:
    raise NotImplementedError('max-pooling with dilation')
  lowest = np.array(-np.inf, x.dtype)
  x = _pad(x, lowest, padding_config=[(*pair, 0) for pair in padding])
  slices = []
  for place in itertools.product(*map(range, window_dimensions)):
    part = x
    for axis, start in enumerate(place):
      size, stride = window_dimensions[axis], window_strides[axis]
      if size * stride > 1:
        last = start + (x.shape[axis] - size) // stride * stride
        part = lax.slice_in_dim(part, start, last + 1, stride, axis)
    slices.append(part)
  return functools.reduce(lax.max, slices)


# Where each keeps what it calls.
_CALLS = {
  'jit': 'jaxpr',
  'custom_jvp_call': 'call_jaxpr',
  'custom_vjp_call': 'call_jaxpr',
}
_REPLACED: dict[str, Callable[..., jax.Array]] = {
  'pad': _pad,
  'reduce_window_max': _pool,
  'reshape': _reshape,
}
