"""Plots and the HTML page of a run; `python -m moda_jax.report` writes it.

What is named here is imported at its first use, for a quick `--help`.
"""

import importlib
from typing import Any

__all__ = ['PageWriter', 'write_page', 'write_run_page']


def __getattr__(name: str) -> Any:
  """Imports a public name from the module that has it."""
  if name not in __all__:
    raise AttributeError(f"module 'moda_jax.report' has no attribute '{name}'")
  return getattr(importlib.import_module('moda_jax.report.page'), name)
