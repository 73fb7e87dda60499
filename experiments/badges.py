"""Writes the repository's address into badges and into the install cells.

  python -m experiments.badges

The address is that of `url` in setup.cfg; a test fails where they differ.
"""

import configparser
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[1]
README = ROOT / 'README.md'
NOTEBOOKS = ROOT / 'experiments' / 'notebooks'
_COLAB = 'https://colab.research.google.com'
_BADGE = re.compile(
  r'\[!\[Open in Colab\]\([^)]*\)\]\([^)]*/(?P<name>\w+)\.ipynb\)'
)
_REPOSITORY = re.compile(r"^REPOSITORY = '[^']*'", re.MULTILINE)


def find_address() -> str:
  """Returns the address of the repository, such as https://github.com/a/b."""
  parser = configparser.ConfigParser()
  parser.read(ROOT / 'setup.cfg')
  return parser['metadata']['url']


def make_badge(address: str, name: str) -> str:
  """Returns the Markdown of the badge that opens a notebook in Colab."""
  place = address.removeprefix('https://github.com/')
  path = f'{place}/blob/main/experiments/notebooks/{name}.ipynb'
  picture = f'![Open in Colab]({_COLAB}/assets/colab-badge.svg)'
  return f'[{picture}]({_COLAB}/github/{path})'


def set_badges(text: str, address: str) -> str:
  """Returns a text whose badges have the address."""
  return _BADGE.sub(lambda found: make_badge(address, found['name']), text)


def set_address(notebook: str, address: str) -> str:
  """Returns a notebook, as JSON, with the address in badge and install cell."""
  content = json.loads(notebook)
  for cell in content['cells']:
    text = set_badges(''.join(cell['source']), address)
    text = _REPOSITORY.sub(f"REPOSITORY = '{address}'", text)
    cell['source'] = text.splitlines(keepends=True)
  return json.dumps(content, indent=1, ensure_ascii=False) + '\n'


def main() -> None:
  """Rewrites the README and all notebooks."""
  address = find_address()
  README.write_text(set_badges(README.read_text(), address))
  for path in sorted(NOTEBOOKS.glob('*.ipynb')):
    path.write_text(set_address(path.read_text(), address))


if __name__ == '__main__':
  main()
