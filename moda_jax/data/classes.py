"""Classes: matched across domains by name."""

import difflib
import logging
from collections.abc import Sequence

import numpy as np

from moda_jax.data.domains import Domain, Domains
from moda_jax.errors import UserError

_log = logging.getLogger(__name__)


def match_classes(domains: Domains) -> Domains:
  """Returns the domains with one list of classes, and labels that index it.

  The list has every class of any source: in the sources' own order where they
  agree, else sorted by name. A source may lack some of them.

  Raises:
    UserError: a class of the target that no source has; the same class by
      two spellings; fewer than two classes; a domain without examples; a
      source without labels.
  """
  for domain in (*domains.sources, domains.target, domains.test):
    if not domain.size:
      raise UserError(f"The domain '{domain.name}' has no examples.")
  for domain in domains.sources:
    if domain.labels is None:
      raise UserError(
        f"The source '{domain.name}' has no labels; only the target may lack "
        'them.'
      )
  classes = _all_classes(domains.sources)
  _check_spelling((*domains.sources, domains.target))
  _check_target(domains.target, classes)
  _check_several(domains.sources)
  for domain in domains.sources:
    lacking = [name for name in classes if name not in domain.classes]
    if lacking:
      _log.warning(
        'source %s lacks %s', domain.name, ', '.join(map(repr, lacking))
      )
  return Domains(
    sources=tuple(_translate(domain, classes) for domain in domains.sources),
    target=_translate(domains.target, classes),
    test=_translate(domains.test, classes),
    held=tuple(_translate(domain, classes) for domain in domains.held),
  )


def _all_classes(sources: tuple[Domain, ...]) -> tuple[str, ...]:
  lists = {domain.classes for domain in sources}
  if len(lists) == 1:
    return lists.pop()
  return tuple(sorted(set().union(*lists)))


def _check_spelling(domains: Sequence[Domain]) -> None:
  """Refuses 'x' here and 'X' there; a domain that has both means both."""
  spelt: dict[str, tuple[str, str]] = {}
  for domain in domains:
    for name in domain.classes:
      other, elsewhere = spelt.setdefault(_fold(name), (name, domain.name))
      if any({name, other} <= set(d.classes) for d in domains):
        continue
      raise UserError(
        f"The class {other!r} of '{elsewhere}' and {name!r} of '{domain.name}' "
        'differ in case or spaces alone; call them the same, as classes are '
        'matched by name.'
      )


def _fold(name: str) -> str:
  return ' '.join(name.casefold().split())


def _check_target(target: Domain, classes: tuple[str, ...]) -> None:
  unknown = [name for name in target.classes if name not in classes]
  if not unknown:
    return
  near = difflib.get_close_matches(unknown[0], classes, 1)
  hint = f" Did you mean '{near[0]}' by '{unknown[0]}'?" if near else ''
  raise UserError(
    f"The target '{target.name}' has the classes "
    f'{", ".join(map(repr, unknown))}, which no source has; the sources have '
    f'{", ".join(map(repr, classes))}.{hint}'
  )


def _check_several(sources: tuple[Domain, ...]) -> None:
  held = {d.classes[i] for d in sources for i in np.unique(d.known_labels)}
  if len(held) < 2:
    raise UserError(
      f'The sources {", ".join(d.name for d in sources)} have examples of '
      f'{", ".join(map(repr, sorted(held)))} only: a single class, while at '
      'least 2 are needed.'
    )


def _translate(domain: Domain, classes: tuple[str, ...]) -> Domain:
  """Returns the domain with its labels as indices into `classes`."""
  if domain.labels is None or domain.classes == classes:
    return domain._replace(classes=classes)
  places = np.asarray([classes.index(c) for c in domain.classes], np.int32)
  return domain._replace(labels=places[domain.labels], classes=classes)
