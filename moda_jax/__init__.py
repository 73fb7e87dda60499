"""Unsupervised multi-source domain adaptation in JAX: MODA-FM and peers.

>>> import moda_jax
>>> config = moda_jax.get_config('mini:mnistm,method=moda_fm')
>>> run = moda_jax.train(config, 'runs/mini')
>>> run.predict(images)

What is named here is imported at its first use.
"""

import importlib
import os
from typing import Any

# Before anything imports TensorFlow, which serves input pipelines only.
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '0')  # logs at start

__version__ = '0.2.0'
__all__ = ['METHODS', 'Run', 'adapt', 'get_config', 'load', 'train']
_PLACES = {
  'METHODS': 'objectives',
  'Run': 'api',
  'adapt': 'api',
  'get_config': 'training.config_files',
  'load': 'api',
  'train': 'api',
}


def __getattr__(name: str) -> Any:
  """Imports a public name from the module that has it."""
  if name not in _PLACES:
    raise AttributeError(f"module 'moda_jax' has no attribute '{name}'")
  module = importlib.import_module(f'moda_jax.{_PLACES[name]}')
  return getattr(module, name)


def __dir__() -> list[str]:
  return sorted([*globals(), *__all__])
