"""What a run shows: lines in a file, a bar to someone who watches."""

import io
import logging
import re
import sys
import types

import pytest
import tiny

import moda_jax
from moda_jax import cli
from moda_jax.training import loop as train

VALUES = {'steps': 12, 'log_every': 5, 'eval_every': 12, 'checkpoint_every': 12}


def run(workdir):
  config = tiny.make_run_config(**VALUES)
  return moda_jax.train(config, workdir, tiny.make_domains())


def test_lines_tell_what_begins_and_the_first_steps(tmp_path, caplog):
  with caplog.at_level(logging.INFO, 'moda_jax'):
    train.train(
      tiny.make_run_config(**VALUES), tmp_path, tiny.make_domains(), 1
    )
  lines = [record.getMessage() for record in caplog.records]
  first = next(i for i, x in enumerate(lines) if x.startswith('training on'))
  assert lines[first] == (
    'training on 1 × CPU from step 0 to 12: 2.4 epochs of 5 steps, 40 examples '
    'in each step'
  )
  assert lines[first + 1] == 'compiling …'
  shown = [re.match(r'step +(\d+)/12', line) for line in lines[first + 2 :]]
  assert [int(m[1]) for m in shown if m] == [1, 5, 10, 12]
  assert 'compiled and taken in' in lines[first + 2]
  assert 'ETA' not in lines[first + 2]
  assert 'ETA' in lines[first + 3]
  with caplog.at_level(logging.INFO, 'moda_jax'):
    caplog.clear()
    train.train(
      tiny.make_run_config(**VALUES), tmp_path, tiny.make_domains(), 1
    )
  assert 'compiling' not in caplog.text


def test_compilation_is_not_part_of_the_speed(monkeypatch):
  from moda_jax.training import progress

  now = [0.0]
  monkeypatch.setattr(progress.time, 'monotonic', lambda: now[0])
  measured = progress.Progress(tiny.make_method('fm'), 0, 100, 10)
  metrics = {'loss': 1.0}
  for step in range(1, 21):
    now[0] += 60 if step == 1 else 2
    measured.advance(step, metrics, reported=step == 20)
  assert measured.measure(20)[progress.STEPS_PER_SECOND] == 0.5


def test_a_step_that_is_logged_at_once_has_a_speed(tmp_path):
  config = tiny.make_run_config(steps=1, log_every=1)
  train.train(config, tmp_path, tiny.make_domains(), 1)
  from moda_jax.training.run_folder import read_metrics

  assert read_metrics(tmp_path)[0]['steps_per_second'] > 0


def test_a_terminal_gets_a_bar_and_lines_with_accuracies(tmp_path, monkeypatch):
  class Terminal(io.StringIO):
    def isatty(self):
      return True

  terminal = Terminal()
  monkeypatch.setattr(sys, 'stdout', terminal)
  package = logging.getLogger('moda_jax')
  monkeypatch.setattr(package, 'handlers', [])
  run(tmp_path)
  assert package.handlers == []
  text = terminal.getvalue()
  assert '12/12' in text
  assert 'step/s' in text or 's/step' in text
  lines = [line for line in re.split('[\r\n]', text) if 'step ' in line[:6]]
  steps = [int(re.match(r'step +(\d+)/', line)[1]) for line in lines]
  assert steps == [1, 12]  # those of steps 5 and 10 are behind the bar
  assert 'compiling …' in text
  assert 'target accuracy' in text


def test_a_file_gets_no_bar(tmp_path, capsys):
  run(tmp_path)
  assert '\r' not in capsys.readouterr().out


@pytest.mark.parametrize(
  ('shell', 'expected'),
  [(None, False), (types.SimpleNamespace(kernel=1), True), (object(), False)],
)
def test_a_notebook_is_known_by_its_kernel(monkeypatch, shell, expected):
  fake = types.SimpleNamespace(get_ipython=lambda: shell)
  monkeypatch.setitem(sys.modules, 'IPython', fake)
  assert cli.in_notebook() == expected
