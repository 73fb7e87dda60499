"""What the unlabelled target adds, by name in `TARGET_TERMS`.

Several are added up: `fixmatch+mcc`.
"""

from moda_jax.errors import UserError
from moda_jax.objectives.parts import TargetTerm
from moda_jax.objectives.target_terms.adamatch import AdaMatch
from moda_jax.objectives.target_terms.dael import Dael
from moda_jax.objectives.target_terms.entropy import Entropy, Information
from moda_jax.objectives.target_terms.fixmatch import FixMatch
from moda_jax.objectives.target_terms.mcc import Mcc

TARGET_TERMS: dict[str, type[TargetTerm]] = {
  'fixmatch': FixMatch,
  'adamatch': AdaMatch,
  'mcc': Mcc,
  'information': Information,
  'entropy': Entropy,
  'dael': Dael,
}


def find_target_terms(text: str) -> tuple[type[TargetTerm], ...]:
  """Returns the terms that a text such as `fixmatch+mcc` means."""
  if text == 'none':
    return ()
  names = text.split('+')
  where = f'config.objective.target_term = {text!r}'
  if not set(names) <= set(TARGET_TERMS):
    raise UserError(
      f'{where} is unknown; allowed are none, and one or more of '
      f'{", ".join(TARGET_TERMS)} with + between them.'
    )
  if len(set(names)) < len(names):
    raise UserError(f'{where}: every term can be there once.')
  return tuple(TARGET_TERMS[name] for name in names)
