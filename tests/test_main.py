"""The command line as a user has it: messages, exit status, resuming."""

import json
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
  """Returns variables for one device and little time spent on compiling."""
  # The last of two values counts; whatever else was set stays.
  flags = os.environ['XLA_FLAGS'] + ' --xla_force_host_platform_device_count=1'
  return os.environ | {'XLA_FLAGS': flags, 'TFDS_DATA_DIR': str(data_dir)}


def call(data_dir, *arguments):
  return subprocess.run(
    command(*arguments),
    cwd=ROOT,
    env=environment(data_dir),
    capture_output=True,
    text=True,
    timeout=1200,
  )


MISTAKES = [
  (['--config=configs/mini.py:emnist'], ["'emnist'", 'mnist, uci']),
  (['--config=configs/mini.py:mnist,lr=1'], ["'lr=1'", 'learning_rate']),
  (['--config=configs/mini.py:mnist', '--config.lr=1'], ['lr']),
  (['--config=configs/none.py:mnist'], ['none.py']),
  (['--config=README.md'], ['README.md', 'not a Python file of a config']),
  (
    ['--config=configs/mini.py:mnist', '--config.objective.tau=2'],
    ['config.objective.tau = 2'],
  ),
  (
    ['--config=mini:mnist', '--config.tau=2'],
    ['config.tau', 'it is now --config.objective.tau'],
  ),
  (
    ['--config=mini:mnist', '--config.optimizer.momentum=0.2'],
    ['config.optimizer.momentum', "'adadelta' does not read"],
  ),
  (['--config=mini:mnist', '--config=mini:uci'], ['given 2 times']),
  (['--config=mnist'], ["no config 'mnist'", 'mini']),
  (
    ['--config=configs/mini.py:mnist', '--config.objective.mu_s=-1'],
    ['config.objective.mu_s = -1'],
  ),
  (
    ['--config=configs/mini.py:mnist', '--config.objective.mu_d=x'],
    ['mu_d', 'x'],
  ),
  (
    ['--config=configs/mini.py:mnist', '--config.data.target=uci'],
    ["config.data.target = 'uci' is among"],
  ),
  (
    ['--config=configs/mini.py:mnist', '--config.data.datasets.uci=no_such'],
    ["'no_such'", 'config.data.datasets.uci'],
  ),
  (
    ['--config=configs/digits.py:mnistm'],
    ["'mnist' is not prepared", 'moda_jax.prepare digits', 'TFDS_DATA_DIR'],
  ),
  (['--config=configs/mini.py:mnist', 'extra'], ['extra']),
  (
    ['--config=mini:mnist,method=fm', '--config.optimizer.beta_rate=1'],
    ['beta_rate = 1.0', "'fm' does not read it"],
  ),
  ([], ['--config']),
]

# Imports once what every command imports, then forks for each of them.
_CALL_EACH = """
import json, os, runpy, sys, tempfile
import moda_jax.report
from moda_jax.training import config_flags, loop, predictions
results = []
for arguments in json.load(sys.stdin):
  with tempfile.TemporaryFile('w+') as errors:
    child = os.fork()
    if not child:
      os.dup2(errors.fileno(), 2)
      sys.argv = ['main', *arguments]
      status = 0
      try:
        runpy.run_module('moda_jax.main', run_name='__main__')
      except SystemExit as ended:
        status = ended.code
        if not isinstance(status, int):
          print(status, file=sys.stderr)
          status = 1
      sys.stderr.flush()
      os._exit(status)  # taking libraries down in order takes seconds
    _, status = os.waitpid(child, 0)
    errors.seek(0)
    results.append((os.waitstatus_to_exitcode(status), errors.read()))
print('RESULTS' + json.dumps(results))
"""


@pytest.fixture(scope='module')
def answers(tmp_path_factory):
  """Exit status and message of every mistake, and the folder of its run."""
  place = tmp_path_factory.mktemp('mistakes')
  given = [[*m, f'--workdir={place / "run"}'] for m, _ in MISTAKES]
  done = subprocess.run(
    [sys.executable, '-W', 'ignore', '-c', _CALL_EACH],
    input=json.dumps(given),
    cwd=ROOT,
    env=environment(place),
    capture_output=True,
    text=True,
    timeout=1200,
  )
  found = done.stdout.partition('RESULTS')[2]
  assert found, done.stderr
  return json.loads(found), place / 'run'


@pytest.mark.parametrize('number', range(len(MISTAKES)))
def test_mistakes_get_one_clear_message(answers, number):
  (status, message), workdir = answers[0][number], answers[1]
  assert status not in (0, None)
  assert 'Traceback' not in message
  for text in MISTAKES[number][1]:
    assert text in message
  assert not workdir.exists()


def test_help_and_list_end_at_once(tmp_path):
  shown = call(tmp_path, '--help', '--config=folder:/none,target=x')
  assert shown.returncode == 0
  assert shown.stdout.count('python -m moda_jax.main') == 2
  assert len(shown.stdout.splitlines()) < 25
  assert '--workdir' in shown.stdout
  listed = call(tmp_path, '--list')
  assert listed.returncode == 0
  for name in ('digits', 'mnistm', 'moda_fm', 'resnet50', 'adamw'):
    assert f'{name}' in listed.stdout
  assert max(len(line) for line in listed.stdout.splitlines()) <= 80


@pytest.mark.slow
def test_a_config_that_builds_on_another_works_from_any_folder(tmp_path):
  path = ROOT / 'configs' / 'office31_shrunk.py'
  result = subprocess.run(
    command(f'--config={path}:webcam', f'--workdir={tmp_path / "run"}'),
    cwd=tmp_path,
    env=environment(tmp_path) | {'PYTHONPATH': str(ROOT)},
    capture_output=True,
    text=True,
    timeout=1200,
  )
  assert result.returncode == 2
  assert "'amazon' is not prepared" in result.stderr
  assert 'Traceback' not in result.stderr


@pytest.mark.slow
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
  output, errors = process.communicate(timeout=600)
  assert process.returncode == 130, errors
  assert 'SIGINT: saving and leaving' in output
  assert 'the same command resumes' in errors
  assert 'Traceback' not in errors
