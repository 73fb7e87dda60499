"""What a config computes, whatever it calls its parts."""

import json
from typing import Any

import ml_collections

from moda_jax.objectives import PARTS, find_method
from moda_jax.training import options
from moda_jax.training.recorded import NOT_COMPARED, flatten
from moda_jax.training.unread import explain_unread_views

_SELECTION = 'run.selection'  # decides which checkpoint is the result
_UNREAD = (*(n for n in NOT_COMPARED if n != _SELECTION), 'data.memory')


def describe_meaning(config: ml_collections.ConfigDict) -> dict[str, Any]:
  """Returns what decides the result of a run, by full name.

  It is equal for two configs that compute the same: a method by its name or by
  its parts, sums in another order, values that are not read.
  """
  values = json.loads(options.prune(config).to_json())
  values.pop('search', None)
  objective = values['objective']
  named = {kind: objective.pop(kind, '') for kind in ('method', *PARTS)}
  flat = flatten(values)
  unread = (
    *_UNREAD,
    *(f'views.{name}' for name in explain_unread_views(config)),
  )
  flat = {k: v for k, v in flat.items() if not k.startswith(unread)}
  return flat | {'objective.parts': _name_parts(config, named['method'])}


def _name_parts(config: ml_collections.ConfigDict, method: str) -> list[str]:
  names = getattr(find_method(config.objective), 'names', None)
  if names is None:  # it is not composed
    return [method]
  weights, *changes = names.weights.split('+')
  terms = sorted(names.target_term.split('+'))
  return [
    '+'.join([weights, *sorted(changes)]),
    names.alignment,
    '+'.join(terms),
    names.predictor,
  ]
