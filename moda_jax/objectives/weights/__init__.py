"""How the sources' losses become one, by name in `WEIGHTS`.

To a name may be added, by `+`, what is to be done to its weights: `floored`
and `averaged`, as in `projected+floored`.
"""

import functools

from moda_jax.errors import UserError
from moda_jax.objectives.parts import Weights, merge_options
from moda_jax.objectives.weights.learned import Relative, Softmax
from moda_jax.objectives.weights.maximum import HardMax, SmoothMax
from moda_jax.objectives.weights.solved import Darn, Projected
from moda_jax.objectives.weights.uniform import Sum, Uniform
from moda_jax.objectives.weights.weighted import (
  Averaged,
  Floored,
  Weighted,
)

WEIGHTS: dict[str, type[Weights]] = {
  'uniform': Uniform,
  'sum': Sum,
  'softmax': Softmax,
  'relative': Relative,
  'smooth_max': SmoothMax,
  'hard_max': HardMax,
  'projected': Projected,
  'darn': Darn,
}
CHANGES: dict[str, type[Weighted]] = {'floored': Floored, 'averaged': Averaged}


@functools.cache
def find_weights(text: str) -> type[Weights]:
  """Returns the weights that a text such as `projected+floored` means."""
  name, *changes = text.split('+')
  if name in CHANGES:  # of the paper's weights
    name, changes = 'softmax', [name, *changes]
  where = f'config.objective.weights = {text!r}'
  if name not in WEIGHTS or not set(changes) <= set(CHANGES):
    raise UserError(
      f'{where} is unknown; allowed are {", ".join(WEIGHTS)}, and with + after '
      f'one of them {", ".join(CHANGES)}.'
    )
  kind = WEIGHTS[name]
  for change in changes:
    _check_change(kind, name, change, where)
    kind = type(
      text,
      (CHANGES[change], kind),
      {
        'Options': merge_options(kind.Options, CHANGES[change].Options),
        '__doc__': kind.__doc__,
      },
    )
  return kind


def _check_change(
  kind: type[Weights], name: str, change: str, where: str
) -> None:
  """Refuses a change that these weights cannot have."""
  if not issubclass(kind, Weighted):
    raise UserError(f"{where}: '{name}' has equal weights, always.")
  if issubclass(kind, CHANGES[change]):
    raise UserError(f"{where}: '{name}' is '{change}' already.")
  if change == 'averaged' and not kind.reads_losses:
    raise UserError(
      f"{where}: '{name}' learns its weights as β and reads no losses that "
      'could be averaged.'
    )
