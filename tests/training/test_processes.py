"""Several processes train one run as one process does."""

import functools
import itertools
import json
import re
import signal
import time

import numpy as np
import pytest
import several_processes

from moda_jax.errors import UserError
from moda_jax.objectives import METHODS
from moda_jax.training.checkpoints import find_steps
from moda_jax.training.processes import Joined

# Each kind of sum over devices, and dropout by an example's place.
FEW = (
  'moda_fm/tiny images',
  'moe/tiny images',
  'm3sda/tiny images',
  'mada/tiny images',
  'moda_fm/reviews',
  'fm/mlp',
)
CASES = (
  *(f'{method}/tiny images' for method in METHODS),
  'moda_fm/digits',
  'moda_fm/reviews',
  'fm/mlp',
  'moda_fm/resnet50',
)


@pytest.fixture(scope='module')
def run_cases(tmp_path_factory):
  """Returns a function that runs cases on some devices of some processes."""
  folder = tmp_path_factory.mktemp('cases')

  @functools.cache  # one process is compared with many times
  def run(processes, devices, cases):
    out = folder / f'{processes}x{devices}'
    arguments = ['tests/process_cases.py', out, *cases]
    started = several_processes.start_all(
      arguments, processes, devices, JAX_ENABLE_X64='1'
    )
    for status, output in several_processes.finish(started):
      assert status == 0, output
    return {
      case: [
        dict(np.load(f'{out}.{case.replace("/", ".")}.{index}.npz'))
        for index in range(processes)
      ]
      for case in cases
    }

  return run


@pytest.mark.parametrize(
  ('processes', 'devices', 'cases'),
  [
    pytest.param(2, 1, FEW, marks=pytest.mark.slow),
    pytest.param(1, 2, CASES, marks=pytest.mark.faults),
    pytest.param(2, 1, CASES, marks=pytest.mark.faults),
    pytest.param(2, 2, CASES, marks=pytest.mark.faults),
    pytest.param(4, 1, CASES, marks=pytest.mark.faults),
    pytest.param(4, 2, FEW, marks=pytest.mark.faults),
  ],
)
def test_processes_equal_one_in_float64(processes, devices, cases, run_cases):
  """The same samples and views; the same parameters and accuracies."""
  alone = {c: found for c, (found,) in run_cases(1, 1, cases).items()}
  together = run_cases(processes, devices, cases)
  largest = {}
  for case, found in together.items():
    one = alone[case]
    for name, expected in one.items():
      values = [process[name] for process in found]
      if name.startswith('batch/'):
        axis = 1 if "['source']" in name else 0
        np.testing.assert_array_equal(
          np.concatenate(values, axis=axis), expected, err_msg=f'{case} {name}'
        )
        continue
      for value, other in itertools.pairwise(values):
        np.testing.assert_array_equal(value, other)
      np.testing.assert_allclose(
        values[0], expected, rtol=1e-9, atol=1e-12, err_msg=f'{case} {name}'
      )
      if name.startswith('state.params'):
        largest[case] = max(
          largest.get(case, 0), difference(values[0], expected)
        )
    assert one.keys() == found[0].keys()
  print(f'{processes} × {devices}: largest relative differences {largest}')


def difference(value, expected):
  """The largest, relative to the largest entry."""
  return float(np.abs(value - expected).max() / (np.abs(expected).max() or 1))


@pytest.fixture(scope='module')
def arrays(tmp_path_factory):
  """Returns a folder with three domains of rows of features."""
  folder = tmp_path_factory.mktemp('arrays')
  rng = np.random.default_rng(0)
  for i, name in enumerate('abt'):
    labels = rng.integers(0, 3, 60)
    features = rng.normal(size=(60, 6)) + labels[:, None] + 0.3 * i
    np.savez(folder / f'{name}.npz', features=features, labels=labels)
  return folder


@pytest.fixture
def make_command(arrays, tmp_path):
  """Returns a function from values of the config to the command."""

  def make(workdir=tmp_path / 'run', **values):
    values = {
      'steps': 40,
      'batch_size': 8,
      'log_every': 10,
      'eval_every': 20,
      'checkpoint_every': 20,
      **values,
    }
    given = ','.join(f'{name}={value}' for name, value in values.items())
    config = f'--config=arrays:{arrays},target=t,{given}'
    return ['-m', 'moda_jax.main', config, f'--workdir={workdir}']

  return make


@pytest.fixture
def train(make_command):
  """Returns a function that starts the command in several processes."""

  def start(processes=2, devices=1, **values):
    command = make_command(**values)
    return several_processes.start_all(command, processes, devices)

  return start


ENDLESS = {'steps': 1_000_000}


def read_lines(workdir):
  text = (workdir / 'metrics.jsonl').read_text()
  return [json.loads(line) for line in text.splitlines()]


def wait_for(path, started):
  """Waits until there is such a file; refuses processes that end before."""
  limit = time.monotonic() + several_processes.TIMEOUT
  while not path.exists():
    ended = [process for process in started if process.poll() is not None]
    assert not ended, [process.communicate()[0] for process in ended]
    assert time.monotonic() < limit
    time.sleep(0.1)


@pytest.mark.slow
def test_the_command_trains_and_evaluates_in_two_processes(train, tmp_path):
  chosen = {'eval_every': 10, 'selection': 'entropy', 'holdout': 0.2}
  alone = train(1, workdir=tmp_path / 'one', **chosen)
  (one,) = several_processes.finish(alone)
  assert one[0] == 0, one[1]
  first, second = several_processes.finish(train(2, devices=2, **chosen))
  assert first[0] == second[0] == 0, first[1] + second[1]
  assert 'training on 4 × CPU in 2 processes from step 0 to 40' in first[1]
  assert 'report:' in first[1]
  assert second[1] == ''
  lines = read_lines(tmp_path / 'run')
  assert [line['step'] for line in lines] == [10, 20, 30, 40]
  for line, alone in zip(lines, read_lines(tmp_path / 'one'), strict=True):
    assert line['loss'] == pytest.approx(alone['loss'], rel=1e-3)
    assert line.keys() == alone.keys()
  judged = {line['step']: line['selection/entropy'] for line in lines}
  best = min(judged, key=judged.get)
  assert f'taken: step {best} of 40, the best evaluation' in first[1]
  assert best in find_steps(tmp_path / 'run')
  assert (tmp_path / 'run' / 'report' / 'index.html').is_file()


@pytest.mark.slow
@pytest.mark.parametrize('killed', [0, 1])
def test_the_others_end_when_one_is_killed_and_the_run_resumes(
  killed, train, tmp_path, record_property
):
  workdir = tmp_path / 'run'
  started = train(**ENDLESS)
  wait_for(workdir / 'checkpoints' / '20', started)
  started[killed].kill()
  start = time.monotonic()
  (status, output) = several_processes.finish(started)[1 - killed]
  seconds = time.monotonic() - start
  record_property('seconds to the end', seconds)
  assert seconds < 60, output
  if killed == 1:
    assert status == 4, output
    assert 'Another process has ended or cannot be reached' in output
    assert 'The same command on all of them resumes' in output
  else:  # it coordinated: JAX may be the first to say so
    assert status != 0, output
    assert 'Another process has ended' in output or 'task died' in output
  reached = find_steps(workdir)[-1]
  for processes, steps in ((2, reached + 20), (1, reached + 40)):
    results = several_processes.finish(train(processes, steps=steps))
    for status, output in results:
      assert status == 0, output
    assert f'resuming at step {steps - 20}' in results[0][1]
  steps = [line['step'] for line in read_lines(workdir)]
  assert steps == list(range(10, reached + 41, 10))


# What one process alone cannot read: its own disk, or its own way there.
BLIND = """
import runpy
from moda_jax.training import checkpoints

original = checkpoints.read_state

def read_state(workdir, step, state):
  if step == 40:
    raise OSError('cannot be read here')
  return original(workdir, step, state)

checkpoints.read_state = read_state
runpy.run_module('moda_jax.main', run_name='__main__', alter_sys=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize('blind', [None, 0, 1])
def test_all_resume_from_a_checkpoint_that_is_sound_for_all(
  blind, train, make_command, tmp_path
):
  workdir = tmp_path / 'run'
  ((status, output),) = several_processes.finish(train(1))
  assert status == 0, output
  newest = workdir / 'checkpoints' / '40'
  if blind is None:
    (newest / 'extra' / 'metadata').unlink()
  port, command = several_processes.find_port(), make_command(steps=60)
  started = []
  for index in range(2):
    arguments = ['-c', BLIND, *command[2:]] if index == blind else command
    flags = several_processes.flags(2, index, port)
    started.append(several_processes.start([*arguments, *flags]))
  results = several_processes.finish(started)
  for status, output in results:
    assert status == 0, output
  assert 'checkpoint of step 40 cannot be restored' in results[0][1]
  assert 'resuming at step 20' in results[0][1]
  assert [line['step'] for line in read_lines(workdir)] == [*range(10, 61, 10)]
  assert find_steps(workdir) == [40, 60]
  assert find_steps_aside(workdir) == ['40']


def find_steps_aside(workdir):
  return [path.name for path in (workdir / 'checkpoints_damaged').iterdir()]


@pytest.mark.slow
def test_a_signal_to_one_process_stops_all_at_the_same_step(train, tmp_path):
  workdir = tmp_path / 'run'
  started = train(**ENDLESS)
  wait_for(workdir / 'checkpoints' / '20', started)
  started[1].send_signal(signal.SIGTERM)
  results = several_processes.finish(started)
  stops = [re.search(r'stopped at step (\d+) of', out) for _, out in results]
  assert all(stops), results
  assert stops[0].group(1) == stops[1].group(1)
  assert results[0][0] == results[1][0] != 0
  step = int(stops[0].group(1))
  assert (workdir / 'checkpoints' / str(step)).is_dir()
  # It goes on in one process with several devices.
  ((status, output),) = several_processes.finish(
    train(1, devices=4, steps=step + 10)
  )
  assert status == 0, output
  assert f'resuming at step {step}' in output


@pytest.mark.slow
def test_a_mistake_that_one_process_finds_ends_all(train, tmp_path):
  several_processes.finish(train(1, steps=10))
  for status, output in several_processes.finish(train(2, seed=5, steps=10)):
    assert status == 2, output
    assert 'run.seed: 0 there, 5 now' in output
    assert 'Traceback' not in output


@pytest.mark.slow
def test_processes_with_different_configs_are_refused(make_command):
  port = several_processes.find_port()
  started = [
    several_processes.start(
      [*make_command(seed=index), *several_processes.flags(2, index, port)]
    )
    for index in range(2)
  ]
  for status, output in several_processes.finish(started):
    assert status == 2, output
    assert 'process 1 has another config or data than process 0' in output


@pytest.mark.parametrize(
  ('coordinator', 'count', 'index', 'message'),
  [
    ('localhost:1', 2, None, 'must be given together'),
    (None, 2, 0, 'must be given together'),
    ('localhost:1', 2, 2, '--process=2: it must be at least 0'),
    ('localhost', 2, 0, 'must be HOST:PORT'),
  ],
)
def test_flags_that_name_no_process_are_refused(
  coordinator, count, index, message
):
  with (
    pytest.raises(UserError, match=message),
    Joined(coordinator, count, index),
  ):
    pass
