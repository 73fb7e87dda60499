"""A disk that is full, a folder that is gone: one message, nothing lost."""

import asyncio
import logging
import resource
import time
import types

import pytest
import tiny
from comparison import assert_same_state, logged
from orbax.checkpoint import CheckpointManager

from moda_jax import cli
from moda_jax.errors import UserError
from moda_jax.training import quiet as quiet_lib
from moda_jax.training.checkpoints import Checkpoints
from moda_jax.training.experiment import Experiment
from moda_jax.training.saved_states import find_steps


def before_step(monkeypatch, number, act):
  """Has `act` called before a step."""
  original = Experiment.make_batches

  def make_batches(self, start):
    for step, batch in enumerate(original(self, start), start + 1):
      if step == number:
        act()
      yield batch

  monkeypatch.setattr(Experiment, 'make_batches', make_batches)


@pytest.fixture
def limit_files():
  """Limits the size of files, as a full disk would; −1 lifts the limit."""
  soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

  def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))

  yield limit
  limit(soft)


def test_a_full_disk_ends_the_run_and_keeps_the_checkpoint(
  tmp_path, monkeypatch, limit_files, caplog, capfd
):
  def fill_the_disk():
    while not find_steps(tmp_path / 'run'):  # it is written meanwhile
      time.sleep(0.01)
    limit_files(8192)

  with monkeypatch.context() as patch:
    before_step(patch, 4, fill_the_disk)
    with pytest.raises(UserError) as error:
      tiny.train(tmp_path / 'run')
  limit_files(resource.RLIM_INFINITY)
  message = str(error.value)
  assert '\n' not in message
  assert 'cannot be saved' in message
  assert 'the checkpoint of step 2 is kept' in message
  assert find_steps(tmp_path / 'run') == [2]
  assert 'Traceback' not in caplog.text + capfd.readouterr().err
  assert_same_state(
    tiny.train(tmp_path / 'run'), tiny.train(tmp_path / 'straight')
  )
  assert logged(tmp_path / 'run') == logged(tmp_path / 'straight')


@pytest.mark.parametrize('lost', ['', 'checkpoints'])
def test_a_folder_that_is_gone_is_named(tmp_path, monkeypatch, lost, caplog):
  workdir = tmp_path / 'run'

  def lose():
    (workdir / lost).rename(tmp_path / 'elsewhere')  # at once, while saving
    (workdir / lost).write_text('in its place')

  before_step(monkeypatch, 4, lose)
  with pytest.raises(UserError, match=r'cannot be (saved|written)') as error:
    tiny.train(workdir)
  assert str(workdir) in str(error.value)
  assert 'there is no earlier checkpoint' in str(error.value)
  # A thread of another test's run may log its failure this late.
  own = [r for r in caplog.records if str(tmp_path) in r.getMessage()]
  assert not any(record.exc_info for record in own)


def test_an_error_of_the_last_save_is_told_too(tmp_path, monkeypatch):
  original = Checkpoints.save

  def save(self, state, step, config, unlogged):
    original(self, state, step, config, unlogged)
    if step == 6:
      self.wait()
      self._manager.wait_until_finished = fail  # as it would be told later

  def fail():
    monkeypatch.setattr(CheckpointManager, 'close', lambda self: None)
    raise OSError(28, 'No space left on device')

  monkeypatch.setattr(Checkpoints, 'save', save)
  with pytest.raises(UserError, match=r'No space left.*step 6 is'):
    tiny.train(tmp_path)


def test_a_command_that_finds_no_room_says_so(capsys):
  def main():
    raise OSError(28, 'No space left on device', 'runs/report/index.html')

  with pytest.raises(SystemExit) as end:
    cli.end_by_message(main)
  assert end.value.code == 2
  assert capsys.readouterr().err == (
    'Nothing can be written: [Errno 28] No space left on device: '
    "'runs/report/index.html'.\n"
  )


def test_stack_traces_of_other_libraries_are_not_left_out():
  quiet = quiet_lib.Quiet()

  def record(path, error):
    return logging.LogRecord('absl', 40, path, 1, 'message', (), error)

  error = (ValueError, ValueError(), None)
  assert not quiet.is_told(record('/x/orbax/manager.py', error))
  assert quiet.is_told(record('/x/orbax/manager.py', None))
  assert quiet.is_told(record('/x/other/file.py', error))


async def read_for_ever():
  """Answers being given up as Orbax does: with an error of its own."""
  try:
    await asyncio.sleep(0)  # never asked again
  except BaseException as error:
    raise RuntimeError('cannot be read') from error


def test_late_calls_alone_are_passed_over(monkeypatch):
  seen = []
  monkeypatch.setattr(quiet_lib, '_before', [seen.append])
  given_up = read_for_ever()
  given_up.send(None)
  with pytest.raises(RuntimeError) as ended:
    given_up.close()
  late, other = (RuntimeError('Event loop is closed'), RuntimeError('other'))
  for error in (late, ended.value, other, None):
    quiet_lib._pass_on(types.SimpleNamespace(exc_value=error))
  assert [told.exc_value for told in seen] == [other, None]
