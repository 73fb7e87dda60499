"""A module imports from its own layer and from those before it, no others."""

import ast
import pathlib

import pytest

PACKAGE = pathlib.Path(__file__).parents[1] / 'moda_jax'
# The rows of the table of layers; what is not named here is the last row.
LAYERS = [
  {'errors', 'config', 'cli', 'files'},
  {'datasets'},
  {'data'},
  {'models'},
  {'objectives'},
  {'selection'},
  {'training'},
  {'report', 'export'},
]
WITHOUT_TENSORFLOW = ('models', 'objectives', 'selection')
MODULES = sorted(PACKAGE.rglob('*.py'))


def find_imports(source, package):
  """Yields the full names of all that a module imports, anywhere in it.

  Args:
    source: the module's text.
    package: what relative imports are relative to.
  """
  for node in ast.walk(ast.parse(source)):
    if isinstance(node, ast.Import):
      yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
      base = package[: len(package) - node.level + 1] if node.level else []
      module = '.'.join([*base, *([node.module] if node.module else [])])
      yield from (f'{module}.{alias.name}' for alias in node.names)


def find_layer(name):
  """Returns the number of the layer that a part of the package is in."""
  for number, parts in enumerate(LAYERS):
    if name in parts:
      return number
  return len(LAYERS)


def find_upward_imports(source, path):
  """Finds what a module at `path`, within the package, imports from above."""
  own = path.parts[0].removesuffix('.py')
  package = ['moda_jax', *path.parts[:-1]]
  found = []
  for name in find_imports(source, package):
    parts = name.split('.')
    if parts[0] != 'moda_jax' or len(parts) < 2 or parts[1].startswith('__'):
      continue
    if parts[1] != own and find_layer(parts[1]) > find_layer(own):
      found.append(name)
  return found


@pytest.mark.parametrize(
  'path', MODULES, ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_no_module_imports_from_above(path):
  relative = path.relative_to(PACKAGE)
  assert find_upward_imports(path.read_text(), relative) == []


@pytest.mark.parametrize(
  'path', MODULES, ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_pure_layers_do_without_tensorflow(path):
  relative = path.relative_to(PACKAGE)
  if relative.parts[0] not in WITHOUT_TENSORFLOW:
    return
  package = ['moda_jax', *relative.parts[:-1]]
  heavy = [
    name
    for name in find_imports(path.read_text(), package)
    if name.split('.')[0] in ('tensorflow', 'tensorflow_datasets')
    or name.startswith('moda_jax.datasets')
  ]
  assert heavy == []


@pytest.mark.parametrize(
  ('source', 'path'),
  [
    ('from moda_jax.training import loop', 'models/digits.py'),
    ('def f():\n  from moda_jax.objectives import METHODS', 'data/batches.py'),
    ('import moda_jax.report.page', 'training/loop.py'),
    ('from ..training import loop', 'data/load.py'),
    ('from moda_jax import training', 'cli.py'),
    ('from moda_jax import api', 'report/page.py'),
  ],
)
def test_a_planted_upward_import_is_found(source, path):
  assert len(find_upward_imports(source, pathlib.Path(path))) == 1


def test_downward_imports_are_not_found():
  source = 'from moda_jax.errors import UserError\nimport jax'
  assert find_upward_imports(source, pathlib.Path('training/loop.py')) == []
