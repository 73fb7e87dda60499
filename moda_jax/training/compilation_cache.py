"""Compiled programs, kept for the next start of the same config."""

import jax

from moda_jax.files.caches import open_cache


def use_compilation_cache(choice: str) -> None:
  """Has JAX keep what it compiles, unless it is set up to do so already.

  Several processes may share the folder: JAX writes each program under another
  name first.

  Args:
    choice: 'auto', 'off', or a folder.
  """
  # JAX makes the attributes of its config when it starts.
  told = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
  if told:
    return
  folder = open_cache(choice, 'compiled', 'config.run.compilation_cache')
  if folder is None:
    return
  jax.config.update('jax_compilation_cache_dir', str(folder))
  jax.config.update('jax_persistent_cache_min_compile_time_secs', 0.2)
