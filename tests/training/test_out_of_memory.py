"""Out of memory: one line with what it depends on."""

import jax
import jax.numpy as jnp
import pytest
import tiny

from moda_jax.errors import UserError
from moda_jax.training import loop
from moda_jax.training.experiment import Experiment
from moda_jax.training.out_of_memory import name_memory


def allocate():
  """Asks JAX for more memory than any machine has."""
  return jax.block_until_ready(jax.jit(lambda: jnp.zeros(2**45))())


def refuse():
  raise MemoryError


@pytest.mark.parametrize('exhaust', [allocate, refuse])
def test_a_run_without_memory_ends_in_one_line(tmp_path, monkeypatch, exhaust):
  def make_batches(self, start):
    exhaust()
    yield

  monkeypatch.setattr(Experiment, 'make_batches', make_batches)
  config = tiny.make_run_config()
  with pytest.raises(UserError, match=r'^Out of memory') as error:
    loop.train(config, tmp_path, tiny.make_domains(), devices=1)
  message = str(error.value)
  assert '\n' not in message
  for text in ('batch_size = 8', 'dtype = float32', 'remat = False', 'image_'):
    assert text in message


def test_other_errors_of_jax_stay_what_they_are():
  with (
    pytest.raises(jax.errors.JaxRuntimeError, match='INTERNAL'),
    name_memory(tiny.make_run_config()),
  ):
    raise jax.errors.JaxRuntimeError('INTERNAL: something else')
