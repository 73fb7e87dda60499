"""Writes the README's tables of parts and methods, from the code.

python -m experiments.readme
"""

import pathlib
import re

from moda_jax.objectives import METHODS, PARTS
from moda_jax.objectives.composition import Composition

_ROOT = pathlib.Path(__file__).parents[1]
README = _ROOT / 'README.md'
_REVIEWS = _ROOT / 'experiments' / 'results' / 'reviews_paper.md'
_START, _END = '<!-- methods: python -m experiments.readme -->', '<!-- end -->'
_KINDS = {
  'weights': 'of the sources',
  'alignment': 'of the domains',
  'target_term': 'what the target adds',
  'predictor': 'the classifiers',
}


def find_region(text: str) -> str:
  """Returns what is between the marks in the README's text."""
  return text.split(_START)[1].split(_END)[0]


def make_region() -> str:
  """Returns what belongs between the marks: both tables."""
  return f'\n{_format_parts()}\n{_format_methods()}'


def _format_parts() -> str:
  lines = ['| part | | choices |', '|---|---|---|']
  for kind, meaning in _KINDS.items():
    choices = []
    for name, part in PARTS[kind].items():
      choices.append(f'`{name}`' + (f' ({part.paper})' if part.paper else ''))
    lines.append(f'| `{kind}=` | {meaning} | {", ".join(choices)} |')
  return '\n'.join(lines) + '\n'


def _format_methods() -> str:
  figures = read_figures(_REVIEWS.read_text().split('Target ')[0])
  lines = [
    '| `method=` | idea | parts | paper | Reviews |',
    '|---|---|---|---|---|',
  ]
  for name, variants in _group(list(METHODS)).items():
    method, parts = METHODS[name], '–'
    if issubclass(method, Composition):
      parts = ', '.join(method.names)
    names = ', '.join(f'`{n}`' for n in (name, *variants))
    idea = (method.__doc__ or '').split('\n')[0].removesuffix('.')
    cells = [names, idea, parts, method.paper, figures.get(name, '')]
    lines.append(f'| {" | ".join(cells)} |')
  return '\n'.join(lines) + '\n'


def _group(names: list[str]) -> dict[str, list[str]]:
  """Returns each method with its variants, whose names begin with its own."""
  groups: dict[str, list[str]] = {}
  for name in names:
    stems = [stem for stem in groups if name.startswith(f'{stem}_')]
    if stems and stems[-1] != 'moda':  # MODA-FM is the paper's own method
      groups[stems[-1]].append(name)
    else:
      groups[name] = []
  return groups


def read_figures(text: str) -> dict[str, str]:
  """Returns the last cell of each row of a table, by the method of the row.

  Rows that name further values are left out.
  """
  rows = re.findall(r'^\| `(\w+)` \|.*\| (.*?) \|$', text, re.MULTILINE)
  return dict(rows)


def main() -> None:
  """Writes the tables into the README."""
  text = README.read_text()
  old, new = (f'{_START}{x}{_END}' for x in (find_region(text), make_region()))
  README.write_text(text.replace(old, new))


if __name__ == '__main__':
  main()
