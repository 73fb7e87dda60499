"""The command line as a user has it: messages, exit status, resuming."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from moda_jax.training.run_folder import read_metrics

ROOT = pathlib.Path(__file__).parents[1]


def command(*arguments):
  return [sys.executable, '-m', 'moda_jax.main', *arguments]


def environment(data_dir):
  """One device, and little time spent on compiling."""
  flags = {'XLA_FLAGS': '--xla_backend_optimization_level=0'}
  return os.environ | flags | {'TFDS_DATA_DIR': str(data_dir)}


def call(data_dir, *arguments):
  return subprocess.run(
    command(*arguments),
    cwd=ROOT,
    env=environment(data_dir),
    capture_output=True,
    text=True,
    timeout=300,
  )


@pytest.mark.parametrize(
  ('arguments', 'named'),
  [
    (['--config=configs/mini.py:emnist'], ["'emnist'", 'mnist, uci']),
    (['--config=configs/mini.py:mnist,lr=1'], ["'lr=1'", 'learning_rate']),
    (['--config=configs/mini.py:mnist', '--config.lr=1'], ['lr']),
    (['--config=configs/none.py:mnist'], ['none.py']),
    (['--config=README.md'], ['README.md', 'no Python file of a config']),
    (['--config=configs/mini.py:mnist', '--config.tau=2'], ['config.tau = 2']),
    (
      ['--config=configs/mini.py:mnist', '--config.mu_s=-1'],
      ['config.mu_s = -1'],
    ),
    (['--config=configs/mini.py:mnist', '--config.mu_d=x'], ['mu_d', 'x']),
    (
      ['--config=configs/mini.py:mnist', '--config.target=uci'],
      ["config.target = 'uci' is among"],
    ),
    (
      ['--config=configs/mini.py:mnist', '--config.datasets.uci=no_such'],
      ["'no_such'", 'config.datasets.uci'],
    ),
    (
      ['--config=configs/digits.py:mnistm'],
      ["'mnist' is not prepared", 'moda_jax.prepare digits', 'TFDS_DATA_DIR'],
    ),
    (['--config=configs/mini.py:mnist', 'extra'], ['extra']),
    ([], ['--config']),
  ],
)
def test_mistakes_get_one_clear_message(tmp_path, arguments, named):
  result = call(tmp_path, *arguments, f'--workdir={tmp_path / "run"}')
  assert result.returncode != 0
  assert 'Traceback' not in result.stderr
  for text in named:
    assert text in result.stderr
  assert not (tmp_path / 'run').exists()


def test_a_config_that_builds_on_another_tells_where_to_stand(tmp_path):
  path = ROOT / 'configs' / 'office31_shrunk.py'
  result = subprocess.run(
    command(f'--config={path}:webcam', f'--workdir={tmp_path / "run"}'),
    cwd=tmp_path,
    env=environment(tmp_path),
    capture_output=True,
    text=True,
    timeout=300,
  )
  assert result.returncode == 2
  assert "No module named 'configs'" in result.stderr
  assert 'the folder that holds configs/' in result.stderr
  assert 'Traceback' not in result.stderr


def test_train_interrupt_resume_evaluate(mini_data_dir, tmp_path):
  arguments = [
    '--config=configs/mini.py:mnistm,method=moda,steps=12,width=0.05,'
    'batch_size=8,samples=64,log_every=1,eval_every=6,checkpoint_every=100'
  ]
  workdir = tmp_path / 'run'
  interrupt_after_a_step(mini_data_dir, arguments, workdir)
  result = call(mini_data_dir, *arguments, f'--workdir={workdir}')
  assert result.returncode == 0, result.stderr
  assert 'resuming at step' in result.stdout
  lines = read_metrics(workdir)
  assert [line['step'] for line in lines] == list(range(1, 13))
  assert (workdir / 'report' / 'index.html').exists()

  result = call(
    mini_data_dir, *arguments, f'--workdir={workdir}', '--mode=evaluate'
  )
  percent = 100 * lines[-1]['target/accuracy']
  assert f'target accuracy {percent:.2f} % at step 12' in result.stdout


def interrupt_after_a_step(data_dir, arguments, workdir):
  process = subprocess.Popen(
    command(*arguments, f'--workdir={workdir}'),
    cwd=ROOT,
    env=environment(data_dir),
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
  )
  while not (workdir / 'metrics.jsonl').exists():
    assert process.poll() is None, process.stderr.read()
    time.sleep(0.01)
  process.send_signal(signal.SIGINT)
  output, errors = process.communicate(timeout=120)
  assert process.returncode == 130, errors
  assert 'SIGINT: saving and leaving' in output
  assert 'the same command resumes' in errors
  assert 'Traceback' not in errors
