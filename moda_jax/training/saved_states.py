"""Reading a run's checkpoints: the newest one that is sound.

Everything in a checkpoint is JSON or plain arrays: reading it executes nothing.
"""

import contextlib
import json
import logging
import os
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
import orbax.checkpoint as ocp

from moda_jax.errors import UserError
from moda_jax.training import processes
from moda_jax.training.checksums import (
  Damaged,
  check_arrays,
  describe_arrays,
  sum_json,
)
from moda_jax.training.quiet import pass_over_late_calls
from moda_jax.training.train_step import TrainState

_log = logging.getLogger(__name__)
FOLDER = 'checkpoints'
# What predicting needs of a state; the optimizer's part is left on disk.
_PREDICTING = ('step', 'params', 'method_state', 'ema_params')
# What Orbax raises, by what is damaged.
_FAULTS = (Damaged, ValueError, KeyError, TypeError, AttributeError, OSError)
_TOLD = 200  # characters of an error's message
Read = TypeVar('Read')


class Saved(NamedTuple):
  """What a checkpoint gives back.

  Attributes:
    state: the train state.
    unlogged: what the run had not logged yet, see `MetricsBuffer`, and which
      steps it had logged, see `MetricsFile.describe`.
  """

  state: TrainState
  unlogged: dict[str, Any]


def first_line(error: Exception) -> str:
  """Returns what an error says, in short."""
  lines = str(error).strip().splitlines()
  told = lines[0].rstrip('.')[:_TOLD] if lines else ''
  if isinstance(error, KeyError | TypeError | AttributeError) or not told:
    return f'{type(error).__name__}: {told}'  # which tell little by themselves
  return told


def find_steps(workdir: str | os.PathLike) -> list[int]:
  """Returns the steps of a run's checkpoints, in order."""
  paths = _folder(workdir).glob('*')
  return sorted(int(path.name) for path in paths if path.name.isdigit())


def find_sound(
  workdir: str | os.PathLike,
  read: Callable[[int], Read],
  preferred: Sequence[int] = (),
  together: bool = False,
) -> tuple[Read | None, list[int]]:
  """Reads the first of the preferred checkpoints, or else the newest, sound.

  Args:
    workdir: the run's folder.
    read: reads the checkpoint of a step.
    preferred: steps, the best first, of which some may have no checkpoint.
    together: takes the one that is sound for all processes, which must all
      call this.

  Returns:
    What was read, or None without a checkpoint, and the steps of those damaged.
  """
  damaged: dict[int, str] = {}
  # The folder is looked at again each time: a run under way removes old ones.
  while True:
    left = [step for step in find_steps(workdir) if step not in damaged]
    chosen = _choose(left, preferred, together)
    if chosen is None:
      break
    found, fault = _try(read, chosen)
    # Known to all before any reads another one, or goes on.
    if fault := processes.hear_any(fault) if together else fault:
      damaged[chosen] = fault
      continue
    for step, reason in damaged.items():
      _log.warning(
        'the checkpoint of step %d cannot be restored (%s): going on from that '
        'of step %d',
        step,
        reason,
        chosen,
      )
    return found, list(damaged)
  if damaged:
    reasons = '; '.join(f'step {s}: {why}' for s, why in damaged.items())
    raise UserError(
      f'No checkpoint in {_folder(workdir)} can be restored: {reasons}. '
      'Nothing was removed. To start again, choose another --workdir.'
    )
  return None, []


def _choose(
  left: Sequence[int], preferred: Sequence[int], together: bool
) -> int | None:
  """Returns the step to read next, the same in all processes; None for none."""
  wanted = [step for step in (*preferred, *left[-1:]) if step in left][:1]
  if together:
    told = processes.hear_first(str(wanted[0]) if wanted else '')
    wanted = [int(told)] if told else []
  return wanted[0] if wanted else None


def _try(read: Callable[[int], Read], step: int) -> tuple[Read | None, str]:
  """Reads a checkpoint; says what is wrong with one that is damaged."""
  try:
    return read(step), ''
  except _FAULTS as error:
    return None, first_line(error)


def read_state(
  workdir: str | os.PathLike, step: int, state: TrainState
) -> Saved:
  """Reads a whole checkpoint like `state`, and checks it."""
  extra = _read_extra(_folder(workdir) / str(step))
  with _open(workdir, ocp.StandardCheckpointHandler()) as manager:
    args = ocp.args.Composite(state=ocp.args.StandardRestore(state))
    restored = manager.restore(step, args=args)['state']
  if extra is None:
    return Saved(restored, {})
  check_arrays(restored, extra['checksums'])
  if sum_json(extra['unlogged']) != extra['unlogged_checksum']:
    raise Damaged('the checksum of what was not logged is wrong')
  return Saved(restored, extra['unlogged'])


def read_arrays(workdir: str | os.PathLike, step: int) -> TrainState:
  """Reads and checks what predicting needs of a checkpoint."""
  extra = _read_extra(_folder(workdir) / str(step))
  with _open(workdir, ocp.PyTreeCheckpointHandler()) as manager:
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
  values: dict[str, Any] = dict.fromkeys(_PREDICTING)
  values |= arrays['state']
  values['method_state'] = values['method_state'] or {}
  state = TrainState(opt_state=(), **values)
  if extra is not None:
    check_arrays(state, extra['checksums'])
  return state


def read_kinds(workdir: str | os.PathLike, step: int) -> dict[str, str]:
  """Returns types and shapes of a checkpoint's arrays, by their paths."""
  with _open(workdir, ocp.PyTreeCheckpointHandler()) as manager:
    saved = dict(manager.item_metadata(step)['state'])
  return describe_arrays(jax.tree.map(_to_shape, saved))


def _to_shape(metadata: Any) -> jax.ShapeDtypeStruct:
  return jax.ShapeDtypeStruct(metadata.shape, metadata.dtype)


@contextlib.contextmanager
def _open(
  workdir: str | os.PathLike, handler: ocp.CheckpointHandler
) -> Iterator[ocp.CheckpointManager]:
  """Gives what reads a run's checkpoints and leaves them as they are."""
  pass_over_late_calls()
  # Each process reads by itself: Orbax would have it wait at the end for the
  # others, for ever where one of them has failed.
  own = jax.process_index()
  alone = ocp.options.MultiprocessingOptions(
    primary_host=own, active_processes={own}
  )
  json_file = ocp.JsonCheckpointHandler()
  manager = ocp.CheckpointManager(
    _folder(workdir),
    options=ocp.CheckpointManagerOptions(
      create=False,
      lightweight_initialize=True,  # what is there may be damaged
      multiprocessing_options=alone,
    ),
    item_handlers={'state': handler, 'config': json_file, 'extra': json_file},
  )
  try:
    yield manager
  except Exception as error:
    # Orbax raises nothing more specific where an array cannot be read.
    if type(error) is not Exception:
      raise
    cause = error.__cause__
    told = first_line(cause if isinstance(cause, Exception) else error)
    raise Damaged(told) from error
  finally:
    manager.close()


def _folder(workdir: str | os.PathLike) -> pathlib.Path:
  return pathlib.Path(workdir).absolute() / FOLDER


def _read_extra(folder: pathlib.Path) -> dict[str, Any] | None:
  """Returns what is saved beside a state; None in versions without it."""
  path = folder / 'extra' / 'metadata'
  if not path.exists():
    about = json.loads((folder / '_CHECKPOINT_METADATA').read_text())
    if 'extra' in about['item_handlers']:
      raise Damaged(f'{path.parent.name}/{path.name} is missing')
    return None
  extra = json.loads(path.read_text())
  if not isinstance(extra['checksums'], dict):
    raise Damaged(f'{path.parent.name}/{path.name} is damaged')
  return extra


def load_state(
  workdir: str | os.PathLike,
  step: int | None = None,
  preferred: Sequence[int] = (),
) -> TrainState:
  """Returns what predicting needs of a run's state, as NumPy arrays.

  It comes as it was saved, whatever the run's optimizer and devices were.

  Args:
    workdir: the run's folder.
    step: of one of its checkpoints; a sound one by default.
    preferred: steps, the best first, that come before the last one.
  """
  if step is not None:
    try:
      return read_arrays(workdir, step)
    except _FAULTS as error:
      raise UserError(
        f'The checkpoint of step {step} in {_folder(workdir)} cannot be read: '
        f'{first_line(error)}.'
      ) from error
  found, _ = find_sound(
    workdir, lambda step: read_arrays(workdir, step), preferred
  )
  if found is None:
    raise UserError(f"'{workdir}' does not hold a checkpoint yet.")
  return found
