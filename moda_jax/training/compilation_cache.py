"""Compiled programs, kept for the next start of the same config."""

import os
import pathlib

import jax

from moda_jax.errors import UserError


def use_compilation_cache(choice: str) -> None:
  """Has JAX keep what it compiles, unless it is set up to do so already.

  Several processes may share the folder: JAX writes each program under another
  name first.

  Args:
    choice: 'auto', 'off', or a folder.
  """
  # JAX makes the attributes of its config when it starts.
  told = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
  if choice == 'off' or told:
    return
  folder = _default_folder() if choice == 'auto' else pathlib.Path(choice)
  try:
    folder.mkdir(parents=True, exist_ok=True)
  except OSError as error:
    if choice == 'auto':  # a read-only home is not the user's mistake
      return
    raise UserError(
      f"config.run.compilation_cache = '{choice}' cannot be used: {error}."
    ) from error
  jax.config.update('jax_compilation_cache_dir', str(folder))
  jax.config.update('jax_persistent_cache_min_compile_time_secs', 0.2)


def _default_folder() -> pathlib.Path:
  base = os.environ.get('XDG_CACHE_HOME') or pathlib.Path.home() / '.cache'
  return pathlib.Path(base) / 'moda_jax' / 'compiled'
