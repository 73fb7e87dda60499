"""The run's folder as others have left it: damaged, foreign, incomplete."""

import json
import re
import shutil

import pytest
import tiny

import moda_jax
from moda_jax.errors import UserError
from moda_jax.training import loop, recorded
from moda_jax.training.record_file import find_record
from moda_jax.training.run_folder import RunFolder, read_metrics


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
  workdir = tmp_path_factory.mktemp('folder') / 'run'
  run(workdir)
  return workdir


@pytest.fixture
def workdir(trained, tmp_path):
  """Returns a copy of a finished run, to damage."""
  shutil.copytree(trained, tmp_path / 'run')
  return tmp_path / 'run'


def run(workdir, **values):
  config = tiny.make_run_config(method='source_only', steps=2, log_every=1)
  tiny.set_values(config, **values)
  return loop.train(config, workdir, tiny.make_domains(), devices=1)


def contents(folder):
  """Returns everything in a folder, by path."""
  return {
    path: path.read_bytes() if path.is_file() else None
    for path in folder.rglob('*')
  }


def open_again(workdir):
  record = json.loads((workdir / 'config.json').read_text())
  return RunFolder(workdir, record)


@pytest.mark.parametrize(
  'content',
  [
    bytes(range(256)),
    b'hello\nworld\n',
    b'hello',
    b'{"loss": 1}\n',
    b'[1]\n',
    b'{"step": "x"}\n',
    None,
  ],
  ids=['binary', 'text', 'word', 'no step', 'list', 'odd step', 'dir'],
)
def test_metrics_of_others_are_refused_and_left_alone(workdir, content):
  file = workdir / 'metrics.jsonl'
  file.unlink()
  if content is None:
    file.mkdir()
  else:
    file.write_bytes(content)
  before = contents(workdir)
  for read in (open_again, lambda folder: moda_jax.load(folder).accuracy):
    with pytest.raises(UserError, match=r'metrics\.jsonl is damaged, or was'):
      read(workdir)
  assert contents(workdir) == before


def test_a_file_in_place_of_checkpoints_is_refused(workdir):
  shutil.rmtree(workdir / 'checkpoints')
  (workdir / 'checkpoints').write_text('mine')
  before = contents(workdir)
  with pytest.raises(UserError, match='checkpoints in it is a file'):
    open_again(workdir)
  assert contents(workdir) == before
  with pytest.raises(UserError, match='does not hold a checkpoint'):
    moda_jax.load(workdir)


def test_metrics_outlive_deleted_checkpoints(workdir, caplog):
  before = (workdir / 'metrics.jsonl').read_text()
  shutil.rmtree(workdir / 'checkpoints')
  run(workdir)
  assert (workdir / 'metrics_2.jsonl').read_text() == before
  assert [line['step'] for line in read_metrics(workdir)] == [1, 2]
  assert 'up to step 2 is kept in metrics_2.jsonl' in caplog.text


DAMAGED = pytest.mark.parametrize(
  ('content', 'message'),
  [
    (b'{"half', r'config\.json is damaged \(Unterminated'),
    (bytes(range(256)), r'config\.json is damaged'),
    (b'', r'config\.json is damaged'),
    (b'[]', r'config\.json was not written by a run'),
    (b'{}', r'config\.json was not written by a run'),
    (b'{"record": 3}', r'config\.json was not written by a run'),
    (None, r'it has checkpoints, but no config\.json'),
  ],
  ids=['half', 'binary', 'empty', 'list', 'nothing', 'odd record', 'deleted'],
)


def damage(workdir, content):
  path = workdir / 'config.json'
  path.unlink() if content is None else path.write_bytes(content)


@DAMAGED
def test_a_damaged_config_without_a_copy_is_named(workdir, content, message):
  damage(workdir, content)
  shutil.rmtree(workdir / 'checkpoints' / '2' / 'config')
  before = contents(workdir)
  for read in (lambda path: RunFolder(path, {'record': {}}), moda_jax.load):
    with pytest.raises(UserError, match=message) as error:
      read(workdir)
    assert 'no checkpoint has a copy of it' in str(error.value)
    assert 'Put back the config.json' in str(error.value)
  assert contents(workdir) == before


@DAMAGED
def test_a_damaged_config_is_restored_from_a_checkpoint(
  workdir, caplog, content, message
):
  path = workdir / 'config.json'
  before = path.read_text()
  damage(workdir, content)
  damaged = contents(workdir)
  moda_jax.load(workdir)  # reads the copy, and leaves the folder as it is
  assert contents(workdir) == damaged
  caplog.clear()
  RunFolder(workdir, json.loads(before)).close()
  (told,) = (r.getMessage() for r in caplog.records)
  assert re.search(message, told)
  assert 'what the checkpoint of step 2 has of it is used' in told
  assert json.loads(path.read_text()) == json.loads(before)
  aside = workdir / 'config_damaged.json'
  assert (aside.read_bytes() if aside.exists() else None) == content
  caplog.clear()
  RunFolder(workdir, json.loads(before)).close()
  assert not caplog.records


def test_another_config_is_refused_when_the_recorded_one_is_damaged(workdir):
  other = json.loads((workdir / 'config.json').read_text())
  other['run']['seed'] = 7
  damage(workdir, None)
  with pytest.raises(UserError, match=r'run\.seed: 0 there, 7 now'):
    RunFolder(workdir, other)


def test_the_newest_copy_that_is_sound_is_taken(workdir):
  for step, text in ((3, '{"experiment": "3"}'), (10, '{"exp'), (11, None)):
    copy = workdir / 'checkpoints' / str(step) / 'config' / 'metadata'
    copy.parent.mkdir(parents=True)
    if text is not None:
      copy.write_text(text)
  damage(workdir, b'')
  assert find_record(workdir) == ({'experiment': '3'}, True)


def test_a_run_whose_config_was_lost_goes_on(workdir):
  damage(workdir, b'')
  run(workdir, steps=3)
  assert [line['step'] for line in read_metrics(workdir)] == [1, 2, 3]
  record = json.loads((workdir / 'config.json').read_text())
  assert record['run']['steps'] == 3


@pytest.mark.parametrize('workdir', [None, 3, ''])
def test_what_does_not_name_a_folder_is_refused(workdir):
  message = f'--workdir={workdir!r} does not name a folder'
  with pytest.raises(UserError, match=message):
    moda_jax.load(workdir)
  with pytest.raises(UserError, match=message):
    loop.train(tiny.make_run_config(), workdir)  # its data is not there
  with pytest.raises(UserError, match=message):
    recorded.as_folder(workdir)
