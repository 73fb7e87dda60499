"""The study of remedies: its runs, what it chooses, its command's help."""

import pathlib
import subprocess
import sys

import pytest
from made_up_runs import write_run

from experiments import remedies
from experiments.figures import remedy_table
from experiments.figures.remedy_table import Row
from experiments.runs import descriptions
from experiments.runs.scales import find_setting
from moda_jax.errors import UserError

ROOT = pathlib.Path(__file__).parents[1]
TINY = find_setting('digits', 'tiny')


def test_remedies_are_chosen_on_held_out_sources(study_flags, tmp_path):
  plans = remedies.make_plans('mnistm', 1)
  assert [plan.remedy for plan in plans] == list(remedies.REMEDIES)
  lines = []
  for number, plan in enumerate(plans[:2]):
    assert sorted(r.target for r in plan.held_out) == ['mnist', 'synth', 'uci']
    for request in plan.held_out:
      assert 'mnistm' not in request.config().data.sources
      assert request.target not in request.config().data.sources
    for request in (*plan.held_out, *plan.real):
      alpha = dict.fromkeys(request.config().data.sources, 0.0)
      alpha[next(iter(alpha))] = 1.0
      accuracy = 0.9 if request.target == 'mnistm' else 0.5 + 0.1 * number
      weights = {f'alpha/{name}': value for name, value in alpha.items()}
      write_run(request.folder, request.config(), accuracy, **weights)
      lines += descriptions.describe_run(request.folder, TINY)
  # One held-out run of the third remedy does not make a row of it.
  request = plans[2].held_out[0]
  write_run(request.folder, request.config())
  lines += descriptions.describe_run(request.folder, TINY)
  rows = remedies.find_rows(plans, lines)
  assert [row.mean for row in rows] == pytest.approx([50, 60])
  assert [row.target for row in rows] == pytest.approx([90, 90])
  assert rows[0].effective == pytest.approx(1 / 2)  # one of two sources
  assert list(rows[0].alpha.values()) == [1, 0, 0]
  files = remedies.draw(plans, 'mnistm', TINY, lines, tmp_path / 'drawn')
  assert [f.suffix for f in files] == ['.md', '.csv', '.png', '.pdf']
  text = files[0].read_text()
  assert '| 60.0 | 0.50 | 90.0 |' in text
  assert ', 1 seed. ' in text
  assert 'mnistm itself, 1 epoch, is only reported' in text
  with pytest.raises(UserError, match='No remedy has all its runs'):
    remedies.draw(plans, 'mnistm', TINY, lines[-1:], tmp_path / 'drawn')


def make_row(name, a, b, is_equal=False):
  return Row(name, is_equal, {'a': a, 'b': b}, 1.0, None, {})


def test_equal_weights_are_not_chosen(tmp_path):
  rows = [
    make_row('the worse', 10, 20),
    make_row('the better', 20, 30),
    make_row('equal', 50, 30, is_equal=True),
  ]
  files = remedy_table.write('Title', 't', '', rows, tmp_path / 'drawn')
  caption = files[0].read_text().splitlines()[0]
  assert 'which chooses: the better. Equal weights' in caption
  assert 'are higher on a and the mean. t itself, not trained' in caption
  files = remedy_table.write('Title', 't', '', rows[:2], tmp_path / 'drawn')
  assert 'Equal weights' not in files[0].read_text()
  with pytest.raises(UserError, match='No remedy has all its runs'):
    remedy_table.choose(rows[2:])


def test_alpha_is_held_for_half_of_a_run(study_flags):
  def find_holds(target):
    (plan,) = [p for p in remedies.make_plans(target, 5) if p.remedy.is_held]
    requests = [*plan.held_out, *plan.real]
    return {request.config().objective.alpha_hold for request in requests}

  assert find_holds('mnistm') == {3}  # of six steps
  study_flags.experiment, study_flags.scale = 'reviews', 'paper'
  study_flags.epochs = 2
  assert find_holds('books') == {100, 250}
  study_flags.set = ['samples=0']
  with pytest.raises(UserError, match='samples=0 leaves open'):
    find_holds('books')
  with pytest.raises(UserError, match="--target names 'mnistm'; known are boo"):
    find_holds('mnistm')
  study_flags.experiment = 'office31'
  with pytest.raises(UserError, match='office31 has 2 sources'):
    find_holds('amazon')


def test_help_has_the_flags_that_studies_share():
  shown = subprocess.run(
    [sys.executable, '-m', 'experiments.remedies', '--help'],
    cwd=ROOT,
    capture_output=True,
    text=True,
    timeout=600,
  ).stdout
  found = [line.split(':')[0].strip() for line in shown.splitlines()]
  assert {'--target', '--experiment', '--scale', '--lines'} <= set(found)
  assert '--targets' not in found  # it is one target's study
