"""Trained models with random parameters, and inputs for them."""

import json

import jax
import numpy as np
import tiny
from weight_writers import WRITERS

from moda_jax.models import published_weights
from moda_jax.models.backbone import Backbone
from moda_jax.training import options
from moda_jax.training.model import Inputs, Model
from moda_jax.training.recorded import to_record
from moda_jax.training.train_step import TrainState
from moda_jax.training.trained import Trained

CLASSES = ('mug', 'pen', 'Stück')
SMALL = {'rtol': 1e-4, 'atol': 1e-6}


def make_trained(
  workdir, shape, variant='', picture_size=0, origins=None, gain=1.0, **values
):
  """Returns a model with random parameters and state, and a run's folder.

  Args:
    workdir: the run's folder.
    shape: of one input.
    variant: of pretrained weights.
    picture_size: see `Inputs`.
    origins: to record.
    gain: of kernels; above 1 the answers of stacked networks, whose kernels
      are drawn too small, depend on the inputs.
    **values: of the config.
  """
  config = options.prune(tiny.make_run_config(**values))
  inputs = Inputs(shape, CLASSES, variant, picture_size=picture_size)
  model = Model(config, inputs)
  state = jax.eval_shape(lambda: model.create_state()[0])  # compiles nothing
  rng = np.random.default_rng(0)

  def draw(x):
    fan_in = np.prod(x.shape[:-1])
    scale = gain / np.sqrt(fan_in) if len(x.shape) > 1 else 0.5
    return rng.normal(size=x.shape, scale=scale).astype(np.float32)

  state = TrainState(
    step=np.int32(6),
    params=jax.tree.map(draw, state.params),
    opt_state=(),
    # Variances are among these.
    method_state=jax.tree.map(lambda x: 1 + abs(draw(x)), state.method_state),
    ema_params=jax.tree.map(draw, state.ema_params),
  )
  workdir.mkdir(exist_ok=True)
  known = dict.fromkeys('abct', 'folder /home/me/pictures, 9 examples')
  record = to_record(config, known | (origins or {}), inputs)
  (workdir / 'config.json').write_text(json.dumps(record))
  return Trained(workdir, model, state)


def make_trained_on_features(folder):
  """Returns the same for `network=features`, with tiny weights of a ResNet."""
  source = WRITERS['h5 weights'](folder)
  (folder / 'run').mkdir()
  weights = folder / 'run' / 'backbone.npz'
  published_weights.convert_file(source, weights)
  backbone = Backbone(published_weights.load_pretrained(weights))
  trained = make_trained(
    folder / 'run',
    (backbone.features,),
    backbone.variant,
    picture_size=32,
    origins={'weights': backbone.description},
    network='features',
    hidden=8,
  )
  return trained, backbone


def make_inputs(shape, count):
  rng = np.random.default_rng(1)
  if len(shape) == 1:
    return rng.normal(size=(count, *shape)).astype(np.float32)
  colours = rng.integers(0, 128, (count, 1, 1, 3), np.uint8)
  return colours + rng.integers(0, 128, (count, *shape), np.uint8)
