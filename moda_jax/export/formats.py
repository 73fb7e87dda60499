"""A trained model as one function of its inputs, and the files that hold it."""

import contextlib
import functools
import importlib.util
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.export
import numpy as np

from moda_jax.errors import UserError
from moda_jax.export import onnx_file
from moda_jax.models.backbone import Backbone
from moda_jax.training import devices
from moda_jax.training.model import Inputs
from moda_jax.training.trained import Trained

STABLEHLO, SAVEDMODEL = 'model.stablehlo', 'savedmodel'
PLATFORMS = ('cpu', 'cuda', 'tpu')


def input_shape(inputs: Inputs) -> tuple[int, ...]:
  """Returns the shape of one input of the exported model."""
  size = inputs.picture_size
  return (size, size, 3) if size else inputs.shape


class Portable:
  """A model with its arrays inside, for any number of inputs.

  Attributes:
    taken: its input, with the symbol b for how many there are.
  """

  def __init__(self, trained: Trained, backbone: Backbone | None = None):
    """Takes what predicts.

    Args:
      trained: the model.
      backbone: what computes its features from pictures, if anything.
    """
    self._model, self._backbone = trained.model, backbone
    state = trained.state
    # As NumPy's arrays they become constants, and those not used fall away.
    self._arrays = jax.tree.map(
      np.asarray, (state.predicting_params, state.method_state)
    )
    shape = input_shape(trained.model.inputs)
    dtype = np.uint8 if trained.takes_images else np.float32
    (batch,) = jax.export.symbolic_shape('b')
    self.taken = jax.ShapeDtypeStruct((batch, *shape), dtype)

  def predict(self, x: jax.Array) -> jax.Array:
    """Computes probabilities `[b, C]`; to be traced."""
    if self._backbone is not None:
      x = self._backbone.apply(self._backbone.variables, x)
    return self._model.predict_fn(*self._arrays, x)

  @functools.cached_property
  def exported(self) -> jax.export.Exported:
    """What StableHLO and SavedModel are written from."""
    with _without_locations():
      traced = jax.export.export(jax.jit(self.predict), platforms=PLATFORMS)
      return traced(self.taken)


@contextlib.contextmanager
def _without_locations() -> Iterator[None]:
  """Keeps paths of source files on this machine out of what is exported."""
  name = 'jax_traceback_in_locations_limit'
  before = getattr(jax.config, name)
  jax.config.update(name, 0)
  try:
    yield
  finally:
    jax.config.update(name, before)


def _write_stablehlo(portable: Portable, folder: pathlib.Path) -> None:
  (folder / STABLEHLO).write_bytes(portable.exported.serialize())


def _write_savedmodel(portable: Portable, folder: pathlib.Path) -> None:
  devices.hide_from_tensorflow()
  import tensorflow as tf  # takes a while to import
  from jax.experimental import jax2tf

  converted = jax2tf.convert(
    portable.exported.call,
    polymorphic_shapes=['(b, ...)'],
    with_gradient=False,
    native_serialization_platforms=PLATFORMS,
  )
  taken = portable.taken
  signature = tf.TensorSpec((None, *taken.shape[1:]), taken.dtype, 'inputs')

  @tf.function(autograph=False, input_signature=[signature])
  def predict(inputs: Any) -> dict[str, Any]:
    return {'probabilities': converted(inputs)}

  module = tf.Module()
  module.predict = predict
  with _without_locations():
    tf.saved_model.save(
      module,
      str(folder / SAVEDMODEL),
      signatures={'serving_default': predict},
    )


def _write_onnx(portable: Portable, folder: pathlib.Path) -> None:
  onnx_file.write(portable.predict, portable.taken, folder)


WRITERS: dict[str, Callable[[Portable, pathlib.Path], None]] = {
  'stablehlo': _write_stablehlo,
  'savedmodel': _write_savedmodel,
  'onnx': _write_onnx,
}


def choose(formats: Sequence[str]) -> list[str]:
  """Returns the formats to write; refuses what is unknown or cannot work.

  Args:
    formats: names in `WRITERS`; by default all that work here.
  """
  lacking = {}
  if importlib.util.find_spec('jax.experimental.jax2tf') is None:
    lacking['savedmodel'] = (
      f'jax.experimental.jax2tf, which JAX {jax.__version__} lacks'
    )
  if not onnx_file.is_installed():
    lacking['onnx'] = f'jax2onnx: {onnx_file.INSTALLING}'
  working = [name for name in WRITERS if name not in lacking]
  for name in formats:
    if name not in WRITERS:
      known = ', '.join(WRITERS)
      raise UserError(f"--formats: '{name}' is unknown; allowed are {known}.")
    if name in lacking:
      raise UserError(
        f"--formats: '{name}' needs {lacking[name]}; allowed here are "
        f'{", ".join(working)}.'
      )
  return list(dict.fromkeys(formats)) or working
