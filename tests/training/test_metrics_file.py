"""Lines of metrics: damaged ones cost no other."""

import json

import pytest

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
