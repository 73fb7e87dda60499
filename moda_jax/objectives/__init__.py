"""Objectives: methods by name in `METHODS`, most of them composed of parts.

A method is composed of weights, alignment, target terms and a predictor, each
kind in a folder of its own; `formulas` has what they compute, as functions of
arrays, and `named` the compositions with a name.
"""

from collections.abc import Mapping
from typing import Any

from moda_jax.config import not_allowed
from moda_jax.errors import UserError
from moda_jax.objectives.alignment import ALIGNMENTS
from moda_jax.objectives.composition import Composition, Parts, compose
from moda_jax.objectives.method import Method
from moda_jax.objectives.named import METHODS
from moda_jax.objectives.parts import Part
from moda_jax.objectives.predictors import PREDICTORS
from moda_jax.objectives.target_terms import TARGET_TERMS
from moda_jax.objectives.weights import CHANGES, WEIGHTS

__all__ = ['METHODS', 'PARTS', 'find_method', 'given_parts', 'name_method']
# By the name of the value that chooses among them.
PARTS: dict[str, Mapping[str, type[Part]]] = {
  'weights': WEIGHTS | {f'+{name}': change for name, change in CHANGES.items()},
  'alignment': ALIGNMENTS,
  'target_term': TARGET_TERMS,
  'predictor': PREDICTORS,
}


def find_method(objective: Mapping[str, Any]) -> type[Method]:
  """Returns the method that a config's section chooses.

  `weights`, `alignment`, `target_term` and `predictor` replace parts of the
  method named in `method`, where they are given. A change of weights alone,
  such as `weights=floored`, changes the method's own.

  Raises:
    UserError: there is no such method or part, or they do not go together.
  """
  name = objective['method']
  if name not in METHODS:
    raise UserError(
      f"config.objective.method = '{name}' is unknown; allowed are "
      f'{", ".join(METHODS)}.'
    )
  method, given = METHODS[name], given_parts(objective)
  if not given:
    return method
  if not issubclass(method, Composition):
    kind = next(iter(given))
    raise UserError(
      f"config.objective.{kind} = '{given[kind]}': '{name}' is not composed of "
      'parts; choose another method.'
    )
  weights = given.get('weights', '')
  if weights.partition('+')[0] in CHANGES:
    given['weights'] = f'{method.names.weights}+{weights}'
  return compose(*method.names._replace(**given))


def name_method(objective: Mapping[str, Any]) -> str:
  """Returns the name of the method, with the parts that are not its own."""
  given = [f'{kind}={name}' for kind, name in given_parts(objective).items()]
  return ','.join([objective['method'], *given])


def given_parts(objective: Mapping[str, Any]) -> dict[str, str]:
  """Returns the parts that replace those of the method, by kind."""
  found = {kind: objective.get(kind, '') for kind in Parts._fields}
  for kind, name in found.items():
    if not isinstance(name, str):
      raise not_allowed(f'config.objective.{kind}', name, 'of type str')
  return {kind: name for kind, name in found.items() if name}
