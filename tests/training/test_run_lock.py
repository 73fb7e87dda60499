"""A second process in a run's folder."""

import os
import subprocess
import sys

import pytest
import tiny

from moda_jax.errors import UserError
from moda_jax.training import loop, reopened
from moda_jax.training.experiment import Experiment
from moda_jax.training.run_lock import RunLock

# Nothing but the lock, so that it starts at once.
HOLDER = """
import fcntl, os, sys, time
file = open(sys.argv[1] + '/.lock', 'a+')
fcntl.flock(file, fcntl.LOCK_EX)
file.truncate(0)
file.write(f'process {os.getpid()} on there')
file.flush()
print('locked', flush=True)
time.sleep(600)
"""


def run(workdir):
  config = tiny.make_run_config(method='source_only', steps=2)
  return loop.train(config, workdir, tiny.make_domains(), devices=1)


@pytest.fixture
def holder(tmp_path):
  """Returns another process that has the folder."""
  command = [sys.executable, '-c', HOLDER, str(tmp_path)]
  with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
    assert process.stdout.readline() == 'locked\n'
    yield process
    process.kill()


def test_a_second_process_is_refused_until_the_first_is_dead(
  tmp_path, holder, monkeypatch
):
  lock = RunLock(tmp_path)
  message = rf"--workdir='{tmp_path}' is in use: process {holder.pid} on there"
  with pytest.raises(UserError, match=message):
    lock.take()
  with monkeypatch.context() as patch:
    patch.setattr(Experiment, '__init__', lambda *_: pytest.fail('too late'))
    with pytest.raises(UserError, match=message):
      run(tmp_path)
  with monkeypatch.context() as patch:  # another one that begins just then
    patch.setattr(RunLock, 'is_known', False)
    with pytest.raises(UserError, match=message):
      run(tmp_path)
  assert not (tmp_path / 'config.json').exists()
  holder.kill()  # without a chance to tidy up
  holder.wait()
  run(tmp_path)


def test_a_run_gives_the_lock_back_however_it_ends(tmp_path, monkeypatch):
  with monkeypatch.context() as patch:
    patch.setattr(Experiment, 'make_batches', lambda *_: pytest.fail('ended'))
    with pytest.raises(pytest.fail.Exception):
      run(tmp_path)
  run(tmp_path)
  with RunLock(tmp_path) as lock:
    lock.take()
    lock.take()  # it has it already
    with pytest.raises(UserError, match=f'process {os.getpid()} on'):
      run(tmp_path)
  run(tmp_path)


def test_a_run_under_way_can_be_evaluated(tmp_path):
  run(tmp_path)
  config = tiny.make_run_config(method='source_only', steps=2)
  with RunLock(tmp_path) as lock:
    lock.take()
    assert 0 <= reopened.evaluate(config, tmp_path, tiny.make_domains()) <= 1


def test_a_file_system_without_locks_is_told_of(tmp_path, monkeypatch, caplog):
  def refuse(*_):
    raise OSError(38, 'Function not implemented')

  monkeypatch.setattr('fcntl.flock', refuse)
  with RunLock(tmp_path) as lock:
    lock.take()
  assert 'has no locks' in caplog.text
