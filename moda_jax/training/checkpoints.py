"""Checkpoints of a run: the train state, by Orbax, with checksums.

A checkpoint is a folder named by its step. In it are `state`, the arrays;
`config`, what the run is; and `extra`, checksums of the arrays and what the run
has not logged yet.
"""

import functools
import logging
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import orbax.checkpoint as ocp

from moda_jax.errors import UserError
from moda_jax.training import processes
from moda_jax.training.checksums import sum_arrays, sum_json
from moda_jax.training.quiet import Quiet
from moda_jax.training.saved_states import (
  FOLDER,
  Saved,
  find_sound,
  find_steps,
  first_line,
  read_state,
)
from moda_jax.training.train_step import TrainState

_log = logging.getLogger(__name__)
_ASIDE = 'checkpoints_damaged'
_ITEMS = ('state', 'config', 'extra')
# What Orbax raises, by what is in the way.
_FAULTS = (ValueError, RuntimeError, OSError)


class _Preserved(ocp.checkpoint_managers.PreservationPolicy):
  """Which checkpoints stay: the last ones, and one besides.

  Attributes:
    protected: the step of that one; 0 for none.
  """

  def __init__(self, last: int):
    self._last = last
    self.protected = 0

  def should_preserve(self, checkpoints: Any, *, context: Any) -> list[bool]:
    """Returns for each checkpoint, the oldest first, if it stays."""
    del context
    first = len(checkpoints) - self._last
    return [
      i >= first or found.step == self.protected
      for i, found in enumerate(checkpoints)
    ]


class Checkpoints:
  """The last states of a run, and one that is protected."""

  def __init__(
    self, workdir: str | os.PathLike, kept: int = 2, reading: bool = False
  ):
    """Describes the checkpoints of a run, of which there may be none yet.

    Args:
      workdir: the run's folder.
      kept: how many checkpoints are kept; older ones are removed, but for the
        one that is protected.
      reading: leaves the folder as it is: the run may be under way.
    """
    self._workdir = pathlib.Path(workdir).absolute()
    self._folder = self._workdir / FOLDER
    self._preserved = _Preserved(kept)
    self._reading = reading
    self._quiet = Quiet()

  @functools.cached_property
  def _manager(self) -> ocp.CheckpointManager:
    """Writes; made for the first checkpoint."""
    self._quiet.begin()
    return ocp.CheckpointManager(
      self._folder,
      options=ocp.CheckpointManagerOptions(
        preservation_policy=self._preserved,
        cleanup_tmp_directories=True,  # a killed run's; this one has the lock
        lightweight_initialize=True,  # what is there may be damaged
      ),
      item_names=_ITEMS,
    )

  def protect(self, step: int) -> None:
    """Keeps the checkpoint of a step, until another one is protected."""
    self._preserved.protected = step

  def restore(
    self, state: TrainState, preferred: Sequence[int] = ()
  ) -> Saved | None:
    """Returns the last sound checkpoint; None where there is none at all.

    Damaged ones are passed over with a warning and set aside, so that their
    steps can be saved again. Of several processes all must call this: they
    restore the same checkpoint, which is sound for all of them.

    Args:
      state: arrays as the checkpoint has them.
      preferred: steps whose checkpoints come before the last one.
    """

    def read(step: int) -> Saved:
      return read_state(self._workdir, step, state)

    saved, damaged = find_sound(self._workdir, read, preferred, together=True)
    if saved and damaged and not self._reading:
      with processes.fail_together():
        if processes.is_first():
          for step in damaged:
            self._set_aside(step)
    return saved

  def _set_aside(self, step: int) -> None:
    aside = self._workdir / _ASIDE / str(step)
    number = 2
    try:
      while aside.exists():
        aside = aside.with_name(f'{step}_{number}')
        number += 1
      aside.parent.mkdir(exist_ok=True)
      (self._folder / str(step)).rename(aside)
    except OSError as error:
      raise UserError(
        f'The damaged checkpoint of step {step} cannot be set aside: {error}. '
        f"Move '{self._folder / str(step)}' elsewhere, and the same command "
        'goes on from the one before.'
      ) from error
    _log.warning('the damaged checkpoint is kept as %s', aside)

  def save(
    self,
    state: TrainState,
    step: int,
    config: dict[str, Any],
    unlogged: dict[str, Any],
  ) -> None:
    """Begins to write a checkpoint; training may go on meanwhile.

    Args:
      state: what is saved.
      step: of the state.
      config: what the run is.
      unlogged: see `Saved`.
    """
    # From the state itself: whatever happens on the way to the disk is found.
    extra = {
      'checksums': sum_arrays(state),
      'unlogged': unlogged,
      'unlogged_checksum': sum_json(unlogged),
    }
    try:
      if step in self._manager.all_steps():
        return
      self._manager.save(
        step,
        args=ocp.args.Composite(
          state=ocp.args.StandardSave(state),
          config=ocp.args.JsonSave(config),
          extra=ocp.args.JsonSave(extra),
        ),
      )
    except _FAULTS as error:
      raise self._not_saved(error) from error

  def describe(self) -> str:
    """Says which checkpoint there is to go on from."""
    self.wait()
    return self._describe_kept()

  def _describe_kept(self) -> str:
    steps = find_steps(self._workdir)
    if not steps:
      return 'there is no earlier checkpoint'
    return f'the checkpoint of step {steps[-1]} is kept in {self._folder}'

  def wait(self) -> None:
    """Waits until everything is on disk."""
    if '_manager' not in self.__dict__:  # nothing was saved
      return
    try:
      self._manager.wait_until_finished()
    except _FAULTS as error:
      raise self._not_saved(error) from error

  def _not_saved(self, error: Exception) -> UserError:
    return UserError(
      f'A checkpoint cannot be saved in {self._folder}: {first_line(error)}. '
      f'Training stops; {self._describe_kept()}. Once there is room, and the '
      'folder can be written to, the same command goes on.'
    )

  def close(self) -> None:
    """Waits until everything is on disk, and ends Orbax's threads."""
    if '_manager' not in self.__dict__:
      return
    try:
      self.wait()
      self._quiet.end()  # else what has failed may still be told of
    finally:
      self._manager.close()
