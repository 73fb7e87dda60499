"""What the README shows works as it is."""

import fnmatch
import importlib.util
import pathlib
import re

import pytest
import tiny

import moda_jax
from experiments import readme

ROOT = pathlib.Path(__file__).parents[1]
README = ROOT / 'README.md'
EXPERIMENTS = ROOT / 'experiments' / 'README.md'


def find_blocks(language):
  return re.findall(rf'```{language}\n(.*?)```', README.read_text(), re.DOTALL)


def test_the_python_example_runs(tmp_path, monkeypatch, capsys):
  """With few steps and the tiny network in place of the example's."""
  (code,) = find_blocks('python')
  assert 'steps=2000' in code
  code = code.replace('steps=2000', "steps=2, network='tiny images'")
  monkeypatch.chdir(tmp_path)
  domains = tiny.make_domains()
  names = {}
  for letter, domain in zip(
    'abt', (*domains.sources[:2], domains.target), strict=True
  ):
    names |= {
      f'images_{letter}': domain.inputs,
      f'labels_{letter}': domain.labels,
    }
  exec(code, names)
  assert names['probabilities'].shape == (domains.target.size, 3)
  assert 'Run(' in capsys.readouterr().out


def test_configs_of_the_commands_exist():
  commands = ' '.join(find_blocks('sh')).replace('\\\n', ' ')
  given = re.findall(r'--config=(\S+)', commands)
  assert len(given) >= 5
  for name in given:
    if 'PATH' not in name:
      moda_jax.get_config(name)


def test_the_tables_of_parts_and_methods_are_those_of_the_code():
  """Else: `python -m experiments.readme`."""
  text = README.read_text()
  assert readme.find_region(text) == readme.make_region()


@pytest.mark.parametrize('command', ['make demo', 'make test'])
def test_the_two_commands_are_there(command):
  assert command in README.read_text()


def test_all_results_are_listed_and_all_that_are_listed_exist():
  listed = re.findall(r'`results/([^`<]+)`', EXPERIMENTS.read_text())
  names = [path.name for path in (EXPERIMENTS.parent / 'results').iterdir()]
  matches = {pattern: fnmatch.filter(names, pattern) for pattern in listed}
  assert [p for p, found in matches.items() if not found] == []
  named = {name for found in matches.values() for name in found}
  assert sorted(set(names) - named) == []


def test_commands_and_links_of_the_experiments_exist():
  text = EXPERIMENTS.read_text()
  table = text[: text.index('\n## ')]
  names = re.findall(r'^\| `([a-z_]+)', table, re.MULTILINE)
  studies = [name for name in names if name != 'make']
  assert len(studies) >= 10
  for name in studies:
    assert importlib.util.find_spec(f'experiments.{name}'), name
  for link in re.findall(r'\]\(([^)]+)\)', text):
    assert (EXPERIMENTS.parent / link).is_file(), link
