"""Lines of metrics: damaged ones cost no other."""

import json
import shutil

import pytest
import tiny

from moda_jax.errors import UserError
from moda_jax.training.metrics_file import (
  MetricsFile,
  last_values,
  read_metrics,
)


def write(folder, lines):
  (folder / 'metrics.jsonl').write_bytes(b''.join(lines))


def make_lines(steps=(2, 4, 6, 8)):
  return [b'{"step": %d, "loss": 0.5}\n' % step for step in steps]


def steps_of(folder):
  return [line['step'] for line in read_metrics(folder)]


@pytest.mark.parametrize(
  'damaged',
  [
    b'{"step": 4, "lo#s": 0.5\n',
    b'{"step": 4, "loss": "0.5"}\n',
    b'{"step": "4"}\n',
    b'\xff\xfe{"loss": 4}\n',
    b'[4]\n',
    b'hello\n',
    b'{"step": 44, "loss": 0.5}\n',  # one digit too many
    b'{"step": 2, "loss": 0.5}\n',  # written twice
    b'{"step": 4, "loss": 0.5}J',  # what ends the line
  ],
)
def test_a_damaged_line_is_set_aside_and_costs_no_other(
  tmp_path, caplog, damaged
):
  lines = make_lines()
  lines[1] = damaged
  write(tmp_path, lines)
  before = (tmp_path / 'metrics.jsonl').read_bytes()
  assert steps_of(tmp_path) == [2, 6, 8]
  assert (tmp_path / 'metrics.jsonl').read_bytes() == before
  caplog.clear()
  MetricsFile(tmp_path).prepare(8)
  assert [r.getMessage() for r in caplog.records] == [
    'metrics.jsonl: damaged lines (1) are set aside in metrics_damaged.jsonl'
  ]
  caplog.clear()
  assert steps_of(tmp_path) == [2, 6, 8]
  assert not caplog.records
  aside = (tmp_path / 'metrics_damaged.jsonl').read_bytes()
  assert aside == damaged.rstrip(b'\n') + b'\n'


def test_damage_is_added_to_what_was_set_aside_before(tmp_path):
  for text in (b'one', b'two'):
    write(tmp_path, [*make_lines([2]), text, b'\n', *make_lines([4])])
    MetricsFile(tmp_path).prepare(4)
  assert (tmp_path / 'metrics_damaged.jsonl').read_text() == 'one\ntwo\n'


def test_of_steps_out_of_order_as_few_as_can_be_are_left_out(tmp_path):
  write(tmp_path, make_lines([2, 4, 60, 8, 10, 1, 12]))
  assert steps_of(tmp_path) == [2, 4, 8, 10, 12]


@pytest.mark.parametrize(
  'end', [b'{', b'{"st', b'{"step": 10, "loss": 0.', b'']
)
def test_a_last_line_that_was_cut_is_dropped_without_a_word(
  tmp_path, caplog, end
):
  write(tmp_path, [*make_lines(), end])
  MetricsFile(tmp_path).prepare(8)
  assert steps_of(tmp_path) == [2, 4, 6, 8]
  assert not caplog.records
  assert not (tmp_path / 'metrics_damaged.jsonl').exists()


def saved_with(folder, steps, **values):
  """Returns what a checkpoint keeps of a run with lines of these steps."""
  file = MetricsFile(folder)
  file.prepare(0)
  for step in steps:
    file.append(step, {'loss': 0.5})
  return json.loads(json.dumps(file.describe() | values))


def warnings_of(caplog):
  return [r.getMessage() for r in caplog.records if r.levelname == 'WARNING']


SET_ASIDE = (
  'metrics.jsonl: damaged lines (1) are set aside in metrics_damaged.jsonl'
)


def lose(*steps):
  return 'metrics.jsonl: lines are lost, those of steps ' + ', '.join(
    str(step) for step in steps
  )


@pytest.mark.parametrize('cut', [b'{"step": 8, "lo', b'{"st', b'{'])
@pytest.mark.parametrize('steps', [(2, 4, 6), (), (4, 6)])
def test_a_cut_line_that_is_not_made_again_is_kept(
  tmp_path, caplog, cut, steps
):
  saved = saved_with(tmp_path, (2, 4, 6, 8))
  write(tmp_path, [*make_lines(steps), cut])
  MetricsFile(tmp_path).prepare(9, saved)
  lost = [step for step in (2, 4, 6, 8) if step not in steps]
  assert warnings_of(caplog) == [SET_ASIDE, lose(*lost)]
  assert (tmp_path / 'metrics_damaged.jsonl').read_bytes() == cut + b'\n'
  assert steps_of(tmp_path) == list(steps)


@pytest.mark.parametrize('cut', [b'{"step": 10, "lo', b'{"st'])
@pytest.mark.parametrize('due', [False, True])
def test_a_cut_line_that_is_made_again_is_dropped_without_a_word(
  tmp_path, caplog, cut, due
):
  saved = saved_with(tmp_path, (2, 4, 6, 8), due=due)
  write(tmp_path, [*make_lines(), cut])
  MetricsFile(tmp_path).prepare(10 if due else 9, saved)
  assert steps_of(tmp_path) == [2, 4, 6, 8]
  assert not warnings_of(caplog)
  assert not (tmp_path / 'metrics_damaged.jsonl').exists()


@pytest.mark.parametrize('steps', [(), (2, 4, 6), (4, 6, 8), (2, 8), (2, 10)])
def test_lines_that_are_gone_are_named(tmp_path, caplog, steps):
  saved = saved_with(tmp_path, (2, 4, 6, 8))
  write(tmp_path, make_lines(steps))
  MetricsFile(tmp_path).prepare(8, saved)
  lost = [step for step in (2, 4, 6, 8) if step not in steps]
  assert warnings_of(caplog) == [lose(*lost)]
  # What is saved from now on knows of no line that is not there.
  caplog.clear()
  file = MetricsFile(tmp_path)
  file.prepare(8, saved)
  caplog.clear()
  MetricsFile(tmp_path).prepare(8, file.describe())
  assert not warnings_of(caplog)


def test_of_many_lines_that_are_gone_some_are_named(tmp_path, caplog):
  saved = saved_with(tmp_path, [*range(5, 501, 5), *range(510, 1001, 10), 1003])
  assert saved == {
    'lines': [[5, 500, 5], [510, 1000, 10], [1003, 1003, 1]],
  }
  (tmp_path / 'metrics.jsonl').unlink()
  MetricsFile(tmp_path).prepare(1003, saved)
  assert warnings_of(caplog) == [lose(*range(5, 51, 5)) + ' and 141 more']


def test_without_a_checkpoint_that_knows_nothing_is_missed(tmp_path, caplog):
  write(tmp_path, make_lines([2, 8]))
  MetricsFile(tmp_path).prepare(8, {'skipped': 0, 'steps': []})
  assert not warnings_of(caplog)
  write(tmp_path, [*make_lines([2, 4, 6]), b'{"step": 8, "lo'])
  MetricsFile(tmp_path).prepare(8)
  assert warnings_of(caplog) == [SET_ASIDE]


def test_a_line_that_is_still_due_is_not_kept_twice(tmp_path, caplog):
  """It was written by a run that went on, and was killed soon after."""
  saved = saved_with(tmp_path, (2, 4, 6), due=True)
  write(tmp_path, make_lines())
  MetricsFile(tmp_path).prepare(8, saved)
  assert steps_of(tmp_path) == [2, 4, 6]
  assert not warnings_of(caplog)


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
  workdir = tmp_path_factory.mktemp('lines') / 'run'
  tiny.train(workdir, method='source_only')
  return workdir


@pytest.mark.parametrize(
  ('harm', 'left', 'told'),
  [
    (lambda text: text, [2, 4, 6, 8], []),
    (lambda text: text[:-20], [2, 4, 8], [SET_ASIDE, lose(6)]),
    (lambda text: ''.join(text.splitlines(True)[:2]), [2, 4, 8], [lose(6)]),
    (lambda text: '', [8], [lose(2, 4, 6)]),
    (lambda text: None, [8], [lose(2, 4, 6)]),
  ],
  ids=['sound', 'cut', 'removed', 'emptied', 'deleted'],
)
def test_a_run_that_goes_on_tells_of_every_lost_line(
  trained, tmp_path, caplog, harm, left, told
):
  workdir = tmp_path / 'run'
  shutil.copytree(trained, workdir)
  path = workdir / 'metrics.jsonl'
  text = harm(path.read_text())
  path.unlink() if text is None else path.write_text(text)
  tiny.train(workdir, method='source_only', steps=8)
  assert steps_of(workdir) == left
  told_of_lines = [m for m in warnings_of(caplog) if 'metrics.jsonl' in m]
  assert told_of_lines == told


def test_lines_beyond_the_checkpoint_are_dropped(tmp_path):
  write(tmp_path, make_lines())
  file = MetricsFile(tmp_path)
  file.prepare(5)
  file.append(6, {'loss': 0.25})
  assert steps_of(tmp_path) == [2, 4, 6]
  last = (tmp_path / 'metrics.jsonl').read_text().splitlines()[-1]
  assert json.loads(last) == {'step': 6, 'loss': 0.25}


@pytest.mark.parametrize('content', [b'hello\n', b'{"loss": 1}\n', b'\x00\n'])
def test_a_file_of_others_is_refused(tmp_path, content):
  write(tmp_path, [content])
  for read in (lambda: read_metrics(tmp_path), MetricsFile(tmp_path).check):
    with pytest.raises(UserError, match='was not written by a run'):
      read()


def test_the_last_value_of_a_name_may_be_in_an_earlier_line():
  lines = [{'step': 1, 'loss': 3.0}, {'step': 2, 'loss': 2.0}, {'step': 3}]
  assert last_values(lines) == {'step': 3, 'loss': 2.0}
  assert last_values([]) == {}
