"""ONNX by jax2onnx, checked by onnxruntime before it is written."""

import contextlib
import importlib.util
import logging
import pathlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from moda_jax.errors import UserError
from moda_jax.export.lowering import to_plain

FILE = 'model.onnx'
INSTALLING = "pip install 'moda_jax[onnx]'"
_EXAMPLES = 3  # compared, of random values
# Wide: it finds conversions that are wrong, not rounding, which such inputs,
# unlike any that a network was trained on, may amplify.
_RELATIVE, _ABSOLUTE = 1e-2, 1e-4

Function = Callable[[jax.Array], jax.Array]


def is_installed() -> bool:
  """Returns whether what converts and what checks are there."""
  needed = ('jax2onnx', 'onnxruntime')
  return all(importlib.util.find_spec(name) is not None for name in needed)


def write(
  predict: Function, taken: jax.ShapeDtypeStruct, folder: pathlib.Path
) -> None:
  """Writes `predict`, of inputs `taken`, or refuses one that ONNX lacks."""
  proto = _convert(predict, taken).SerializeToString()
  rng = np.random.default_rng(0)
  shape = (_EXAMPLES, *taken.shape[1:])
  if taken.dtype == np.uint8:
    inputs = rng.integers(0, 256, shape, np.uint8)
  else:
    inputs = rng.normal(size=shape).astype(taken.dtype)
  made = _run(proto, inputs)
  # Accelerators may compute in fewer bits by default.
  with jax.default_matmul_precision('highest'):
    wanted = np.asarray(jax.jit(predict)(inputs))
  if made.shape != wanted.shape or not np.allclose(
    made, wanted, _RELATIVE, _ABSOLUTE
  ):
    raise _refusal('the converted model gives other answers')
  (folder / FILE).write_bytes(proto)


def _convert(predict: Function, taken: jax.ShapeDtypeStruct) -> Any:
  with _quietly():
    try:
      from jax2onnx import to_onnx  # takes a while to import

      return to_onnx(
        to_plain(predict, taken),
        [taken],
        model_name='moda_jax',
        input_names=['inputs'],
        output_names=['probabilities'],
      )
    except (
      ArithmeticError,
      AssertionError,
      AttributeError,
      ImportError,  # made for another JAX
      LookupError,
      RuntimeError,  # NotImplementedError too
      TypeError,
      ValueError,
      jax.errors.InconclusiveDimensionOperation,
    ) as error:
      raise _refusal(f'jax2onnx cannot convert it ({error})') from error


def _run(proto: bytes, inputs: np.ndarray) -> np.ndarray:
  import onnxruntime
  from onnxruntime.capi import onnxruntime_pybind11_state as errors

  options = onnxruntime.SessionOptions()
  options.log_severity_level = 4  # what goes wrong is raised too
  try:
    session = onnxruntime.InferenceSession(
      proto, options, providers=['CPUExecutionProvider']
    )
    (made,) = session.run(['probabilities'], {'inputs': inputs})
  except (
    errors.Fail,
    errors.InvalidArgument,
    errors.InvalidGraph,
    errors.NotImplemented,
    errors.RuntimeException,
  ) as error:
    raise _refusal(f'onnxruntime cannot run it ({error})') from error
  return made


def _refusal(reason: str) -> UserError:
  """Returns the error, in one line whatever the reason's lines are."""
  line = ' '.join(reason.split())
  short = line if len(line) < 300 else f'{line[:300]}…)'
  return UserError(
    f"--formats: 'onnx' cannot hold this model: {short}; name others."
  )


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
  """Silences jax2onnx, which tells of parts that this JAX is too new for."""
  log = logging.getLogger('jax2onnx')
  before = log.level
  log.setLevel(logging.ERROR)
  try:
    with warnings.catch_warnings():
      warnings.simplefilter('ignore')
      yield
  finally:
    log.setLevel(before)
