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
from moda_jax.objectives.target_terms.none import NoTargetTerm

TARGET_TERMS: dict[str, type[TargetTerm]] = {
  'none': NoTargetTerm,
  'fixmatch': FixMatch,
  'adamatch': AdaMatch,
  'mcc': Mcc,
  'information': Information,
  'entropy': Entropy,
  'dael': Dael,
}


def find_target_terms(text: str) -> tuple[type[TargetTerm], ...]:
  """Returns the terms that a text such as `fixmatch+mcc` means."""
  names = text.split('+')
  where = f'config.objective.target_term = {text!r}'
  several = [name for name in TARGET_TERMS if name != 'none']
  if text != 'none' and not set(names) <= set(several):
    raise UserError(
      f'{where} is unknown; allowed are none, and one or more of '
      f'{", ".join(several)} with + between them.'
    )
  if len(set(names)) < len(names):
    raise UserError(f'{where}: a term can be there only once.')
  return tuple(TARGET_TERMS[name] for name in names)
