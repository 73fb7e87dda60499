"""Methods at values of their own, as commands take them in a list."""

from collections.abc import Iterable
from typing import NamedTuple

from moda_jax.errors import UserError
from moda_jax.objectives import METHODS


class Variant(NamedTuple):
  """A method, and what of the config is changed for it.

  Attributes:
    text: as it was given, such as `moda_fm:target_term=fixmatch+mcc`.
    method: a name in `METHODS`.
    values: pairs of `key=value`, each name as short as after `--config=`.
  """

  text: str
  method: str
  values: tuple[str, ...] = ()


def parse_variant(text: str, flag: str = '--methods') -> Variant:
  """Returns what `METHOD` or `METHOD:key=value[:key=value…]` names.

  Args:
    text: what was given.
    flag: that it was given to, for messages.
  """
  method, *values = text.split(':')
  if method not in METHODS:
    raise UserError(f"{flag} names '{method}'; known are {', '.join(METHODS)}.")
  for pair in values:
    key, _, value = pair.partition('=')
    if not key or not value:
      raise UserError(
        f"{flag}={text}: '{pair}' must be key=value, as in "
        'moda_fm:target_term=fixmatch+mcc.'
      )
  return Variant(text, method, tuple(values))


def parse_variants(
  texts: Iterable[str], flag: str = '--methods'
) -> list[Variant]:
  """Returns what the texts name, each once; see `parse_variant`."""
  return [parse_variant(text, flag) for text in dict.fromkeys(texts)]
