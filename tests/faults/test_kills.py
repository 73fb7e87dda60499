"""Runs killed at random moments, and bits flipped at random places.

`make faults` runs these, for half an hour or more, and prints what was tried.
MODA_FAULTS_KILLS sets how many runs of each kind are killed,
MODA_FAULTS_FLIPS how many bits are flipped, MODA_FAULTS_SEED the draws.
"""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pytest
import victim
from comparison import logged

from moda_jax.training import loop
from moda_jax.training.saved_states import find_sound, find_steps, read_state

pytestmark = pytest.mark.faults
VICTIM = pathlib.Path(__file__).with_name('victim.py')
KILLS = int(os.environ.get('MODA_FAULTS_KILLS', '7'))
FLIPS = int(os.environ.get('MODA_FAULTS_FLIPS', '200'))
SEED = int(os.environ.get('MODA_FAULTS_SEED', '0'))
KINDS = ('digits', 'reviews', 'features')


@pytest.fixture(scope='module')
def environment(mini_data_dir):
  flags = os.environ['XLA_FLAGS'] + ' --xla_force_host_platform_device_count=1'
  paths = (str(VICTIM.parents[2]), str(VICTIM.parents[1]))
  return os.environ | {
    'XLA_FLAGS': flags,
    'TFDS_DATA_DIR': str(mini_data_dir),
    'PYTHONPATH': os.pathsep.join(paths),
  }


def start(kind, workdir, environment):
  return subprocess.Popen(
    [sys.executable, str(VICTIM), kind, str(workdir)],
    env=environment,
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
  )


def finish(kind, workdir, environment):
  """Trains to the end; returns how long that took from the first step on."""
  with start(kind, workdir, environment) as process:
    began = wait_for_training(process)
    output = process.stdout.read()
  assert process.returncode == 0, output
  return time.monotonic() - began


def wait_for_training(process):
  for line in process.stdout:
    if line == 'READY\n':
      break
  return time.monotonic()


def send(kind, workdir, environment, number, rng, seconds):
  """Starts a run and sends it a signal at a random moment of its life."""
  with start(kind, workdir, environment) as process:
    if rng.random() < 0.8:
      wait_for_training(process)
      time.sleep(rng.uniform(0, seconds))
    else:
      time.sleep(rng.uniform(0, 8))
    process.send_signal(number)
    process.communicate()
  return process.returncode


def sums_of(workdir):
  """Returns the checksums of the whole state after the last step."""
  folder = workdir / 'checkpoints' / str(find_steps(workdir)[-1])
  return json.loads((folder / 'extra' / 'metadata').read_text())['checksums']


@pytest.fixture(scope='module', params=KINDS)
def undisturbed(request, tmp_path_factory, environment):
  workdir = tmp_path_factory.mktemp(request.param) / 'run'
  seconds = finish(request.param, workdir, environment)
  return request.param, workdir, seconds


def test_killed_runs_end_with_the_same_bits(
  undisturbed, tmp_path, environment, capsys
):
  kind, straight, seconds = undisturbed
  rng = random.Random(f'{SEED} {kind}')
  kills, same, places = 0, 0, []
  for trial in range(KILLS):
    workdir = tmp_path / str(trial) / 'run'
    workdir.parent.mkdir()
    for _ in range(rng.choice([1, 1, 2])):
      status = send(kind, workdir, environment, signal.SIGKILL, rng, seconds)
      kills += status == -signal.SIGKILL
      places.append((find_steps(workdir) or [0])[-1])
    finish(kind, workdir, environment)
    same += sums_of(workdir) == sums_of(straight) and logged(workdir) == logged(
      straight
    )
  with capsys.disabled():
    print(
      f'\n{kind}: {KILLS} runs killed {kills} times, after checkpoints of '
      f'steps {places}: {same} end bit-identical'
    )
  assert same == KILLS


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT])
def test_stopped_runs_end_with_the_same_bits(
  undisturbed, tmp_path, environment, capsys, number
):
  kind, straight, seconds = undisturbed
  rng = random.Random(f'{SEED} {kind} {number}')
  workdir, statuses = tmp_path / 'run', []
  for _ in range(3):
    statuses.append(send(kind, workdir, environment, number, rng, seconds / 3))
  finish(kind, workdir, environment)
  with capsys.disabled():
    print(f'\n{kind}: {number.name} three times, exit statuses {statuses}')
  assert set(statuses) <= {0, 128 + number}
  assert sums_of(workdir) == sums_of(straight)
  assert logged(workdir) == logged(straight)


def test_no_flipped_bit_is_restored(tmp_path, capsys):
  workdir = tmp_path / 'run'
  config, data = victim.make_reviews(workdir)
  outcome = loop.train(config, workdir, data, devices=1)
  last = find_steps(workdir)[-1]
  folder = workdir / 'checkpoints' / str(last)
  files = [path for path in sorted(folder.rglob('*')) if path.is_file()]
  rng = random.Random(f'{SEED} bits')
  found = 0
  for _ in range(FLIPS):
    path = rng.choice(files)
    before = path.read_bytes()
    place = rng.randrange(8 * len(before))
    content = bytearray(before)
    content[place // 8] ^= 1 << place % 8
    path.write_bytes(content)
    saved, _ = find_sound(
      workdir, lambda step: read_state(workdir, step, outcome.state)
    )
    if int(saved.state.step) == last:
      jax.tree.map(np.testing.assert_array_equal, saved.state, outcome.state)
    else:
      found += 1
    path.write_bytes(before)
  with capsys.disabled():
    print(
      f'\n{FLIPS} bits flipped in {len(files)} files: {found} found, '
      f'{FLIPS - found} without effect on what is restored'
    )
