"""Several processes choose one checkpoint; here each is a thread."""

import threading
from concurrent import futures

import jax
import pytest

from moda_jax.errors import UserError
from moda_jax.training import processes
from moda_jax.training.saved_states import find_sound

WAIT = 30  # seconds until a process that the others do not meet gives up


@pytest.fixture
def run_all(monkeypatch):
  """Returns a function that calls another one in several processes."""
  own = threading.local()

  def run(function, count):
    barrier = threading.Barrier(count, timeout=WAIT)
    texts = [''] * count

    def exchange(text):
      texts[own.index] = text
      barrier.wait()
      told = list(texts)
      barrier.wait()
      return told

    def call(index):
      own.index = index
      return function(index)

    monkeypatch.setattr(processes, '_exchange', exchange)
    monkeypatch.setattr(jax, 'process_count', lambda: count)
    with futures.ThreadPoolExecutor(count) as pool:
      return [pool.submit(call, index) for index in range(count)]

  return run


@pytest.fixture
def workdir(tmp_path):
  for step in (2, 4, 6, 8):
    (tmp_path / 'checkpoints' / str(step)).mkdir(parents=True)
  return tmp_path


def make_find(workdir, faulty, preferred=()):
  """Returns a function that finds a checkpoint as one of the processes.

  Args:
    workdir: has the checkpoints.
    faulty: for each process, the steps that it cannot read.
    preferred: for each process, the steps that come first.
  """

  def find(index):
    def read(step):
      if step in faulty[index]:
        raise ValueError(f'fault {step}')
      return step

    first = preferred[index] if preferred else ()
    return find_sound(workdir, read, first, together=True)

  return find


@pytest.mark.parametrize(
  ('faulty', 'expected', 'damaged'),
  [
    ([(), ()], 8, []),
    ([(8,), (8,)], 6, [8]),
    ([(8,), ()], 6, [8]),
    ([(), (8,)], 6, [8]),
    ([(8,), (6,)], 4, [8, 6]),
    ([(6,), (4, 8), (4,)], 2, [8, 6, 4]),
  ],
)
def test_all_take_the_newest_that_is_sound_for_all(
  run_all, workdir, faulty, expected, damaged
):
  ended = run_all(make_find(workdir, faulty), len(faulty))
  found = [process.result() for process in ended]
  assert found == [(expected, damaged)] * len(faulty)


def test_all_refuse_when_none_is_sound_for_all(run_all, workdir):
  faulty = [(8, 4), (6, 2)]
  for process in run_all(make_find(workdir, faulty), 2):
    with pytest.raises(UserError, match='step 6: process 1: fault 6'):
      process.result()


def test_the_first_process_says_which_is_preferred(run_all, workdir):
  find = make_find(workdir, [(), (4,)], preferred=[[4], [2]])
  found = [process.result() for process in run_all(find, 2)]
  assert found == [(8, [4])] * 2


def test_none_is_found_where_there_is_none(run_all, tmp_path):
  found = run_all(make_find(tmp_path, [(), ()]), 2)
  assert [process.result() for process in found] == [(None, [])] * 2


@pytest.mark.parametrize(
  ('texts', 'expected'),
  [
    (['', ''], ''),
    (['a', 'a'], 'a'),
    (['', 'b', ''], 'process 1: b'),
    (['a', 'b'], 'process 0: a'),
  ],
)
def test_what_any_process_tells_is_heard_by_all(run_all, texts, expected):
  heard = run_all(lambda index: processes.hear_any(texts[index]), len(texts))
  assert [process.result() for process in heard] == [expected] * len(texts)
