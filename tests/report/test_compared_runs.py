"""The page of several runs: they are compared."""

import re
import shutil

import pytest
import tiny
from pages import train_tiny

from moda_jax.errors import UserError
from moda_jax.report import __main__ as command
from moda_jax.report import (
  runs,
)


@pytest.fixture(scope='module')
def two(tmp_path_factory):
  """Returns the folders of two runs, with known accuracies."""
  folder = tmp_path_factory.mktemp('two')
  for method in ('source_only', 'moda_fm'):
    train_tiny(folder / method, method=method)
  return folder


def set_accuracy(workdir, value):
  path = workdir / 'metrics.jsonl'
  text = re.sub(
    r'"target/accuracy": [\d.]+',
    f'"target/accuracy": {value}',
    path.read_text(),
  )
  path.write_text(text)


@pytest.mark.parametrize(
  ('after', 'verdict'),
  [
    (0.75, 'adaptation helped, by 25.0 points'),
    (0.25, 'adaptation did harm, by 25.0 points'),
  ],
)
def test_runs_are_compared(two, tmp_path, monkeypatch, after, verdict, capsys):
  """From their folders; the data is gone, and the page says so."""
  for method in ('source_only', 'moda_fm'):
    shutil.copytree(two / method, tmp_path / method)
  set_accuracy(tmp_path / 'source_only', 0.5)
  set_accuracy(tmp_path / 'moda_fm', after)
  monkeypatch.chdir(tmp_path)
  command.main(['source_only', 'moda_fm'])
  page = tmp_path / 'report' / 'index.html'
  assert f'report: {page}' in capsys.readouterr().out
  text = page.read_text()
  assert verdict in text
  assert 'objective.method</td><td>source_only</td><td>moda_fm' in text
  assert text.count('<details') == 4  # each run, and each run's config
  assert 'Nothing is shown of the data' in text


def test_a_difference_by_chance_is_called_so(two):
  domains = tiny.make_domains()
  outcome = train_tiny(two / 'moda_fm')
  shown = []
  for name, accuracy in (('source_only', 0.5), ('moda_fm', 0.6)):
    run = runs.from_outcome(name, outcome, two / name)
    config = tiny.make_run_config(method=name)
    lines = [{'step': 6.0, 'target/accuracy': accuracy}]
    shown.append(run._replace(config=config, metrics=lines))
  from moda_jax.report import comparison

  (sentence,) = comparison.judge(shown)
  assert f'too small for {domains.test.size} examples' in sentence


def test_runs_of_one_method_are_named_by_their_folders(two, tmp_path):
  shutil.copytree(two / 'moda_fm', tmp_path / 'other')
  opened = runs.open_runs([two / 'moda_fm', tmp_path / 'other'])
  assert [run.name for run in opened] == ['moda_fm', 'other']
  opened = runs.open_runs([two / 'moda_fm', two / 'source_only'])
  assert [run.name for run in opened] == ['moda_fm', 'source_only']


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    (['nothing'], 'does not hold a run'),
    (['nothing', 'nothing'], 'given twice'),
  ],
)
def test_what_is_not_a_run_is_refused(
  tmp_path, monkeypatch, arguments, message
):
  monkeypatch.chdir(tmp_path)
  with pytest.raises(UserError, match=message):
    command.main(arguments)
  assert list(tmp_path.iterdir()) == []
