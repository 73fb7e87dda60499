"""Checkpoints that the disk has damaged, and runs that go on from others."""

import json
import pickle
import shutil

import jax
import numpy as np
import pytest
import tiny
from comparison import assert_same_state, logged

from moda_jax.errors import UserError
from moda_jax.training.checkpoints import Checkpoints
from moda_jax.training.checksums import Damaged, check_arrays, sum_arrays
from moda_jax.training.saved_states import (
  find_sound,
  find_steps,
  load_state,
  read_state,
)


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
  """Returns a finished run, with checkpoints of steps 4 and 6."""
  workdir = tmp_path_factory.mktemp('whole') / 'run'
  return tiny.train(workdir), workdir


@pytest.fixture
def workdir(whole, tmp_path):
  """Returns a copy of its folder, to damage."""
  shutil.copytree(whole[1], tmp_path / 'run')
  return tmp_path / 'run'


def arrays_of(workdir, step):
  """Returns the files with the arrays of a checkpoint, the largest first."""
  folder = workdir / 'checkpoints' / str(step) / 'state' / 'ocdbt.process_0'
  files = [path for path in (folder / 'd').iterdir() if path.is_file()]
  return sorted(files, key=lambda path: -path.stat().st_size)


def remove(path):
  path.unlink()


def empty(path):
  path.write_bytes(b'')


def cut(path):
  path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path, places=(0.5,)):
  content = bytearray(path.read_bytes())
  for place in places:
    content[int(place * len(content))] ^= 1
  path.write_bytes(content)


def ruin(workdir, step):
  """Flips bits in every array of a checkpoint."""
  for path in arrays_of(workdir, step):
    flip(path, np.arange(0.005, 1, 0.01))


def contents(folder):
  files = (path for path in folder.rglob('*') if path.is_file())
  return {path: path.read_bytes() for path in files}


def test_the_one_before_a_damaged_checkpoint_ends_with_the_same_bits(
  whole, workdir, caplog
):
  flip(arrays_of(workdir, 6)[0])
  damaged = contents(workdir / 'checkpoints' / '6')
  assert_same_state(tiny.train(workdir), whole[0])
  assert logged(workdir) == logged(whole[1])
  assert find_steps(workdir) == [4, 6]
  told = [r.getMessage() for r in caplog.records if r.levelname == 'WARNING']
  assert len(told) == 2
  assert 'checkpoint of step 6 cannot be restored' in told[0]
  assert told[0].endswith('going on from that of step 4')
  assert 'kept as' in told[1]
  assert all('\n' not in line for line in told)
  aside = contents(workdir / 'checkpoints_damaged' / '6')
  assert list(aside.values()) == list(damaged.values())


@pytest.mark.parametrize('harm', [remove, empty, cut])
@pytest.mark.parametrize(
  'file',
  [
    'arrays',
    'state/_METADATA',
    'state/manifest.ocdbt',
    'extra/metadata',
    '_CHECKPOINT_METADATA',
  ],
)
def test_what_is_missing_or_cut_is_passed_over(whole, workdir, harm, file):
  path = workdir / 'checkpoints' / '6' / file
  harm(arrays_of(workdir, 6)[0] if file == 'arrays' else path)
  expected = whole[0].state
  saved = Checkpoints(workdir).restore(expected)
  # What Orbax notes about items is not needed where they are sound.
  if file == '_CHECKPOINT_METADATA' and int(saved.state.step) == 6:
    jax.tree.map(np.testing.assert_array_equal, saved.state, expected)
    return
  assert int(saved.state.step) == 4
  assert find_steps(workdir) == [4]
  assert (workdir / 'checkpoints_damaged' / '6').is_dir()


def test_no_flipped_bit_of_any_file_changes_what_is_restored(whole, workdir):
  """Each is found, or makes no difference."""
  expected = whole[0].state
  found = 0
  for path in sorted(contents(workdir / 'checkpoints' / '6')):
    before = path.read_bytes()
    flip(path)
    saved, damaged = find_sound(
      workdir, lambda step: read_state(workdir, step, expected)
    )
    if not damaged:
      jax.tree.map(np.testing.assert_array_equal, saved.state, expected)
    found += len(damaged)
    path.write_bytes(before)
  assert found > 1


def test_damage_to_all_checkpoints_is_an_error_and_removes_nothing(
  whole, workdir
):
  for step in (4, 6):
    ruin(workdir, step)
  before = contents(workdir)
  message = r'No checkpoint in .* can be restored: step 6: .*; step 4: '

  def restore(folder):
    return Checkpoints(folder).restore(whole[0].state)

  for read in (restore, load_state):
    with pytest.raises(UserError, match=message) as error:
      read(workdir)
    assert 'Nothing was removed' in str(error.value)
    assert '\n' not in str(error.value)
  assert contents(workdir) == before


def test_reading_passes_a_damaged_checkpoint_and_leaves_it(
  whole, workdir, caplog
):
  ruin(workdir, 6)
  before = contents(workdir)
  assert int(load_state(workdir).step) == 4
  assert 'going on from that of step 4' in caplog.text
  reader = Checkpoints(workdir, reading=True)
  assert int(reader.restore(whole[0].state).state.step) == 4
  assert contents(workdir) == before
  with pytest.raises(UserError, match=r'step 6 in .* cannot be read'):
    load_state(workdir, 6)


def test_a_step_that_is_damaged_twice_is_kept_twice(whole, workdir):
  state = whole[0].state
  for _ in range(2):
    ruin(workdir, 6)
    checkpoints = Checkpoints(workdir)
    checkpoints.restore(state)
    checkpoints.save(state, 6, {}, {})
    checkpoints.close()
  aside = workdir / 'checkpoints_damaged'
  assert sorted(path.name for path in aside.iterdir()) == ['6', '6_2']
  assert int(Checkpoints(workdir).restore(state).state.step) == 6


def test_a_damaged_checkpoint_that_cannot_be_set_aside_is_named(whole, workdir):
  ruin(workdir, 6)
  (workdir / 'checkpoints_damaged').write_text('mine')
  before = contents(workdir)
  message = 'checkpoint of step 6 cannot be set aside: .*File exists'
  with pytest.raises(UserError, match=message) as error:
    Checkpoints(workdir).restore(whole[0].state)
  assert '\n' not in str(error.value)
  assert contents(workdir) == before


def test_what_a_killed_run_was_writing_is_cleared_away(whole, workdir):
  left = workdir / 'checkpoints' / '8.orbax-checkpoint-tmp'
  shutil.copytree(workdir / 'checkpoints' / '6', left)
  checkpoints = Checkpoints(workdir)
  saved = checkpoints.restore(whole[0].state)
  assert int(saved.state.step) == 6
  checkpoints.save(saved.state, 8, {}, {})
  checkpoints.close()
  found = sorted(path.name for path in (workdir / 'checkpoints').iterdir())
  assert found == ['6', '8']


def test_checkpoints_of_versions_without_checksums_are_restored(
  whole, workdir, caplog
):
  folder = workdir / 'checkpoints' / '6'
  shutil.rmtree(folder / 'extra')
  about = json.loads((folder / '_CHECKPOINT_METADATA').read_text())
  del about['item_handlers']['extra']
  (folder / '_CHECKPOINT_METADATA').write_text(json.dumps(about))
  assert int(load_state(workdir).step) == 6
  saved = Checkpoints(workdir).restore(whole[0].state)
  assert int(saved.state.step) == 6
  assert saved.unlogged == {}
  assert not [r for r in caplog.records if r.levelname == 'WARNING']


def test_checksums_name_the_array_and_what_is_wrong_with_it():
  tree = {'a': np.arange(3, dtype=np.float32), 'b': np.zeros((), np.int32)}
  sums = sum_arrays(tree)
  check_arrays(tree, sums)
  check_arrays({'b': tree['b']}, sums)  # a part of it
  with pytest.raises(Damaged, match='the checksum of a is wrong'):
    check_arrays(tree | {'a': np.float32([0, 1, 3])}, sums)
  with pytest.raises(Damaged, match=r'saved as float32\[3\] .* float64\[3\]'):
    check_arrays(tree | {'a': np.arange(3.0)}, sums)
  with pytest.raises(Damaged, match='c was saved as missing'):
    check_arrays(tree | {'c': tree['b']}, sums)


def test_reading_a_checkpoint_unpickles_nothing(whole, workdir, monkeypatch):
  def refuse(*_, **__):
    raise AssertionError('unpickled')

  for name in ('load', 'loads', 'Unpickler', '_Unpickler'):
    monkeypatch.setattr(pickle, name, refuse)
  assert int(load_state(workdir).step) == 6
  assert int(Checkpoints(workdir).restore(whole[0].state).state.step) == 6
  for content in contents(workdir / 'checkpoints').values():
    assert not content.startswith(b'\x80')  # as pickles of today begin
