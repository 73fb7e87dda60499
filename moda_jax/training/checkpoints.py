"""Checkpoints of a run: the train state, by Orbax."""

import logging
import os
import pathlib
from typing import Any

import jax
import ml_collections
import numpy as np
import orbax.checkpoint as ocp

from moda_jax.errors import UserError
from moda_jax.training.model import Inputs
from moda_jax.training.train_step import TrainState

_log = logging.getLogger(__name__)
_FOLDER = 'checkpoints'
# What predicting needs of a state; the optimizer's part is left on disk.
_PREDICTING = ('step', 'params', 'method_state', 'ema_params')


class Checkpoints:
  """The last states of a run."""

  def __init__(self, workdir: str | os.PathLike, kept: int = 2):
    """Opens or makes the folder of checkpoints.

    Args:
      workdir: the run's folder.
      kept: how many checkpoints are kept; older ones are removed.
    """
    self._folder = pathlib.Path(workdir).absolute() / _FOLDER
    self._manager = ocp.CheckpointManager(
      self._folder,
      options=ocp.CheckpointManagerOptions(max_to_keep=kept),
      item_names=('state', 'config'),
    )

  @property
  def latest_step(self) -> int | None:
    """The step of the last checkpoint; None where there is none."""
    return self._manager.latest_step()

  def restore(self, state: TrainState) -> TrainState:
    """Returns the last checkpoint, or `state` where there is none.

    Args:
      state: arrays, or the shapes of arrays, as the checkpoint has them.
    """
    step = self.latest_step
    if step is None:
      return state
    try:
      restored = self._manager.restore(
        step, args=ocp.args.Composite(state=ocp.args.StandardRestore(state))
      )
    except (ValueError, KeyError, OSError) as error:
      raise UserError(
        f'The checkpoint of step {step} in {self._folder} cannot be restored: '
        f'{str(error).splitlines()[0]}. Remove that step to go on from an '
        'earlier one, or choose another --workdir.'
      ) from error
    return restored['state']

  def save(self, state: TrainState, step: int, config: dict[str, Any]) -> None:
    """Begins to write a checkpoint; training may go on meanwhile."""
    if step != self.latest_step:
      self._manager.save(
        step,
        args=ocp.args.Composite(
          state=ocp.args.StandardSave(state),
          config=ocp.args.JsonSave(config),
        ),
      )

  def describe(self) -> str:
    """Says which checkpoint there is to go on from."""
    self._manager.wait_until_finished()
    if self.latest_step is None:
      return 'there is no earlier checkpoint'
    return (
      f'the checkpoint of step {self.latest_step} is kept in {self._folder}'
    )

  def close(self) -> None:
    """Waits until everything is on disk."""
    self._manager.wait_until_finished()
    self._manager.close()


def find_steps(workdir: str | os.PathLike) -> list[int]:
  """Returns the steps of a run's checkpoints, in order."""
  folder = pathlib.Path(workdir).absolute() / _FOLDER
  return sorted(int(p.name) for p in folder.glob('*') if p.name.isdigit())


def load_state(
  workdir: str | os.PathLike, step: int | None = None
) -> TrainState:
  """Returns what predicting needs of a run's state, as NumPy arrays.

  It comes as it was saved, whatever the run's optimizer and devices were.

  Args:
    workdir: the run's folder.
    step: of one of its checkpoints; the last one by default.
  """
  folder = pathlib.Path(workdir).absolute() / _FOLDER
  if not find_steps(workdir):
    raise UserError(f"'{workdir}' does not hold a checkpoint yet.")
  manager = ocp.CheckpointManager(
    folder,
    options=ocp.CheckpointManagerOptions(create=False),
    item_handlers={
      'state': ocp.PyTreeCheckpointHandler(),
      'config': ocp.JsonCheckpointHandler(),
    },
  )
  step = manager.latest_step() if step is None else step
  try:
    saved = manager.item_metadata(step)['state']
    item = {
      name: jax.tree.map(_to_shape, saved[name])
      for name in _PREDICTING
      if saved.get(name) is not None
    }
    as_numpy = ocp.RestoreArgs(restore_type=np.ndarray)
    restore = ocp.args.PyTreeRestore(
      item=item,
      restore_args=jax.tree.map(lambda _: as_numpy, item),
      partial_restore=True,
    )
    arrays = manager.restore(step, args=ocp.args.Composite(state=restore))
  except (ValueError, KeyError, OSError, AttributeError) as error:
    raise UserError(
      f'The checkpoint of step {step} in {folder} cannot be read: '
      f'{str(error).splitlines()[0]}.'
    ) from error
  finally:
    manager.close()
  values: dict[str, Any] = dict.fromkeys(_PREDICTING)
  values |= arrays['state']
  values['method_state'] = values['method_state'] or {}
  return TrainState(opt_state=(), **values)


def _to_shape(metadata: Any) -> jax.ShapeDtypeStruct:
  return jax.ShapeDtypeStruct(metadata.shape, metadata.dtype)


def guess_inputs(
  state: TrainState,
  config: ml_collections.ConfigDict,
  origins: dict[str, str],
) -> Inputs:
  """Returns what a run of version 0.1 takes, which did not record it.

  The number of classes is that of the logits, and the classes are called by
  their numbers; inputs are images of the config's size, or else 32 × 32.
  """
  classifier, extractor = state.params['classifier'], state.params['extractor']
  layers = [name for name in classifier if name.startswith('Dense')]
  last = max(layers, key=lambda name: int(name.rpartition('_')[2]))
  classes = classifier[last]['bias'].shape[-1]
  shape: tuple[int, ...] = (config.data.image_size or 32,) * 2 + (3,)
  if 'Dense_0' in extractor:
    shape = (extractor['Dense_0']['kernel'].shape[-2],)
  variant = origins.get('weights', '').partition(',')[0]
  if config.network.name == 'resnet50':
    variant = variant or 'torchvision'
  return Inputs(shape, tuple(str(i) for i in range(classes)), variant)
