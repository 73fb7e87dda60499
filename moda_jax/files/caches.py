"""Folders for what can be computed again, shared by all runs of a user."""

import os
import pathlib

from moda_jax.errors import UserError


def open_cache(choice: str, name: str, where: str) -> pathlib.Path | None:
  """Returns the folder of a cache, made if it was not there; None for none.

  Args:
    choice: 'auto' for one in the user's cache folder, 'off', or a folder.
    name: of the folder within the user's.
    where: what has been chosen, in messages.
  """
  if choice == 'off':
    return None
  folder = _user_folder(name) if choice == 'auto' else pathlib.Path(choice)
  try:
    folder.mkdir(parents=True, exist_ok=True)
  except OSError as error:
    if choice == 'auto':  # a read-only home is not the user's mistake
      return None
    raise UserError(f"{where} = '{choice}' cannot be used: {error}.") from error
  return folder


def _user_folder(name: str) -> pathlib.Path:
  base = os.environ.get('XDG_CACHE_HOME') or pathlib.Path.home() / '.cache'
  return pathlib.Path(base) / 'moda_jax' / name
