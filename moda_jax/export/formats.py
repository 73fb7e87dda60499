"""A trained model as one function of its inputs, and the files that hold it."""

import contextlib
import importlib.util
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.export
import numpy as np

from moda_jax.errors import UserError
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


def export(trained: Trained, backbone: Backbone | None) -> jax.export.Exported:
  """Returns the model with its arrays inside, for any number of inputs.

  Args:
    trained: the model.
    backbone: what computes its features from pictures, if anything.
  """
  model, state = trained.model, trained.state
  # As NumPy's arrays they become constants, and those not used fall away.
  params, method_state = jax.tree.map(
    np.asarray, (state.predicting_params, state.method_state)
  )

  def predict(x: jax.Array) -> jax.Array:
    if backbone is not None:
      x = backbone.apply(backbone.variables, x)
    return model.predict_fn(params, method_state, x)

  shape = input_shape(model.inputs)
  dtype = np.uint8 if trained.takes_images else np.float32
  (batch,) = jax.export.symbolic_shape('b')
  taken = jax.ShapeDtypeStruct((batch, *shape), dtype)
  with _without_locations():
    return jax.export.export(jax.jit(predict), platforms=PLATFORMS)(taken)


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


def _write_stablehlo(
  exported: jax.export.Exported, folder: pathlib.Path
) -> None:
  (folder / STABLEHLO).write_bytes(exported.serialize())


def _write_savedmodel(
  exported: jax.export.Exported, folder: pathlib.Path
) -> None:
  devices.hide_from_tensorflow()
  import tensorflow as tf  # takes a while to import
  from jax.experimental import jax2tf

  converted = jax2tf.convert(
    exported.call,
    polymorphic_shapes=['(b, ...)'],
    with_gradient=False,
    native_serialization_platforms=PLATFORMS,
  )
  (taken,) = exported.in_avals
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


Writer = Callable[[jax.export.Exported, pathlib.Path], None]
WRITERS: dict[str, Writer] = {
  'stablehlo': _write_stablehlo,
  'savedmodel': _write_savedmodel,
}


def choose(formats: Sequence[str]) -> list[str]:
  """Returns the formats to write; refuses what is unknown or cannot work.

  Args:
    formats: names in `WRITERS`; by default all that work with this JAX.
  """
  can_convert = importlib.util.find_spec('jax.experimental.jax2tf') is not None
  working = [name for name in WRITERS if name != 'savedmodel' or can_convert]
  for name in formats:
    if name not in WRITERS:
      known = ', '.join(WRITERS)
      raise UserError(f"--formats: '{name}' is unknown; allowed are {known}.")
    if name not in working:
      raise UserError(
        f"--formats: '{name}' needs jax.experimental.jax2tf, which JAX "
        f'{jax.__version__} lacks; allowed here are {", ".join(working)}.'
      )
  return list(dict.fromkeys(formats)) or working
