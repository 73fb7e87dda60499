"""Methods at values of their own, as commands take them in a list."""

from collections.abc import Iterable
from typing import NamedTuple

import ml_collections

from moda_jax import config as config_lib
from moda_jax.errors import UserError
from moda_jax.objectives import METHODS
from moda_jax.training import options

_EXAMPLE = 'moda_fm:target_term=fixmatch+mcc'
_OWN = ('objective', 'views', 'optimizer')  # what may differ between runs


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

  @property
  def folder(self) -> str:
    """The name of a folder for it, which links may lead to."""
    return self.text.replace(':', ',').replace('/', '-')


def parse_variant(text: str, flag: str = '--methods') -> Variant:
  """Returns what `METHOD` or `METHOD:key=value[:key=value…]` names.

  Args:
    text: what was given.
    flag: that it was given to, for messages.
  """
  method, *values = text.split(':')
  if method not in METHODS:
    allowed = ', '.join(METHODS)
    hint = f' (or METHOD:key=value, as in {_EXAMPLE})'
    raise UserError(
      f"{flag}: '{method}' is unknown; allowed are {allowed}{hint}."
    )
  for pair in values:
    key, _, value = pair.partition('=')
    if not key or not value:
      raise UserError(
        f"{flag}={text}: '{pair}' must be key=value, as in {_EXAMPLE}."
      )
  return Variant(text, method, tuple(values))


def parse_variants(
  texts: Iterable[str], flag: str = '--methods'
) -> list[Variant]:
  """Returns what the texts name, each once; see `parse_variant`."""
  return [parse_variant(text, flag) for text in dict.fromkeys(texts)]


def apply_variant(
  config: ml_collections.ConfigDict, variant: Variant, flag: str = '--methods'
) -> ml_collections.ConfigDict:
  """Returns a copy of the config with the variant's method and values.

  Raises:
    UserError: there is no such value, the method does not read it, or it is
      one of the data, the network or the run, which all variants share.
  """
  config = config.copy_and_resolve_references()
  config.objective.method = variant.method
  where, given = f'{flag}={variant.text}', []
  for pair in variant.values:
    key = pair.partition('=')[0]
    name = config_lib.full_name(config, key)
    if name is None:
      raise UserError(f"{where}: there is no value '{key}' in the config.")
    if name.partition('.')[0] not in _OWN or name == 'objective.method':
      raise UserError(
        f"{where}: '{key}' cannot differ between methods that are compared; "
        f'set it in --config.'
      )
    given.append(config_lib.set_argument(config, pair, where))
  options.refuse_unread(config, given)
  return config
