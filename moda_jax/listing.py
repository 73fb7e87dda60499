"""What can be chosen: configs and their targets, methods, networks and more.

The first line of each one's docstring says what it is.
"""

import textwrap
from collections.abc import Mapping

from moda_jax.config import import_beside
from moda_jax.models import NETWORKS
from moda_jax.objectives import METHODS, PARTS
from moda_jax.training.config_files import config_folder, config_names
from moda_jax.training.optimizers import OPTIMIZERS

_WIDTH = 80


def describe_choices() -> str:
  """Returns all choices, each with what it is."""
  parts = ['configs (--config=NAME:TARGET[,key=value…])']
  parts += [_describe_config(name) for name in config_names()]
  for title, known in (
    ('methods (method=NAME)', METHODS),
    ('weights of the sources (weights=NAME[+CHANGE…])', PARTS['weights']),
    ('alignments (alignment=NAME)', PARTS['alignment']),
    ('target terms (target_term=NAME[+NAME…])', PARTS['target_term']),
    ('predictors (predictor=NAME)', PARTS['predictor']),
    ('networks (network=NAME)', NETWORKS),
    ('optimizers (optimizer=NAME)', OPTIMIZERS),
  ):
    parts += ['', title, *_describe(known)]
  return '\n'.join(parts)


def _describe(known: Mapping[str, type]) -> list[str]:
  return [_format(name, _first_line(k.__doc__)) for name, k in known.items()]


def _format(name: str, text: str) -> str:
  """Returns a name and its description, wrapped beside it."""
  start = f'  {name:18} '
  return textwrap.fill(
    text, _WIDTH, initial_indent=start, subsequent_indent=' ' * len(start)
  )


def _first_line(docstring: str | None) -> str:
  return (docstring or '').strip().split('\n')[0]


def _describe_config(name: str) -> str:
  module = import_beside(config_folder() / f'{name}.py', name)
  found = ', '.join(getattr(module, 'DATASETS', ()))
  targets = f' Targets: {found}.' if found else ''
  return _format(name, f'{_first_line(module.__doc__)}{targets}')
