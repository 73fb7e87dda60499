"""Out of memory: one line that names what memory depends on."""

import contextlib
from collections.abc import Iterator

import jax
import ml_collections
import tensorflow as tf

from moda_jax.errors import UserError

_EXHAUSTED = 'RESOURCE_EXHAUSTED'


@contextlib.contextmanager
def name_memory(config: ml_collections.ConfigDict) -> Iterator[None]:
  """Makes running out of memory an error that names the config's values."""
  try:
    yield
  except (MemoryError, tf.errors.ResourceExhaustedError) as error:
    raise UserError(_describe(config, str(error))) from error
  except jax.errors.JaxRuntimeError as error:
    if _EXHAUSTED not in str(error):
      raise
    raise UserError(_describe(config, str(error))) from error


def _describe(config: ml_collections.ConfigDict, reason: str) -> str:
  lines = reason.strip().splitlines()
  reason = f' ({lines[0][:120]})' if lines else ''
  network = config.network
  values = {
    'batch_size': config.data.batch_size,
    'image_size': config.data.image_size or 'that of the data',
    'dtype': network.get('dtype', 'float32'),
    'remat': network.get('remat', False),
  }
  shown = ', '.join(f'{name} = {value}' for name, value in values.items())
  return (
    f'Out of memory{reason}: {shown}. A smaller batch_size or image_size needs '
    'less; so do dtype=bfloat16 and remat=true, where the network reads them.'
  )
