"""A few labelled examples of the target: some train, the others choose.

The table `data.target_labels` has the columns `example` and `label`: a picture
by its path in the target's folder, as predictions name it, or an example by its
place in the domain, from 0 on; and the name of its class. Lines without a label
are passed over.

Half of the labelled examples become one more source, called TARGET_labelled,
and are in the unlabelled target as before; the labels of the other half are
held out, to choose a model by. None of them counts in the target's accuracy.
"""

import csv
import logging
import pathlib

import ml_collections
import numpy as np

from moda_jax.data.domains import Domain, Domains, labelled_name
from moda_jax.data.fingerprints import fingerprint
from moda_jax.errors import UserError

HEADER = ('example', 'label')
_KIND = 'labelled'
_log = logging.getLogger(__name__)


def name_source(config: ml_collections.ConfigDict) -> ml_collections.ConfigDict:
  """Returns the config with the source that labelled examples make, if any."""
  data = config.data
  if not data.target_labels:
    return config
  name, served = labelled_name(data.target), f'{_KIND}:{data.target_labels}'
  if data.datasets.get(name, served) != served:
    raise UserError(
      f"config.data.target_labels makes a source '{name}', and "
      'config.data.datasets has another domain of this name; rename that.'
    )
  config = config.copy_and_resolve_references()
  with config.unlocked():
    config.data.datasets[name] = served
    if name not in data.sources:
      config.data.sources = (*data.sources, name)
  return config


def add_source(whole: Domains, data: ml_collections.ConfigDict) -> Domains:
  """Returns the whole domains with that source, if there is one.

  Args:
    whole: may have it already.
    data: the section of the config.
  """
  name = labelled_name(whole.target.name)
  if not data.target_labels or name in [s.name for s in whole.sources]:
    return whole
  labels = _check_labels(whole, data.target_labels)
  training, held = _halve(labels)
  place = {example: i for i, example in enumerate(whole.target.names)}
  classes = tuple(sorted(set(training.values())))
  source = whole.target.take(np.array([place[e] for e in training]))
  source = source._replace(
    name=name,
    origin=f'labels in {data.target_labels}',
    classes=classes,
    labels=np.array([classes.index(c) for c in training.values()], np.int32),
  )
  source = source._replace(fingerprint=fingerprint(source))
  _log.warning(
    'labels of the target %s are used: of %d labelled examples %d train, as '
    'source %s, %d choose, and none is tested on.',
    whole.target.name,
    len(labels),
    len(training),
    source.name,
    len(held),
  )
  return whole._replace(sources=(*whole.sources, source))


def find_labelled(target: Domain, path: str) -> np.ndarray:
  """Returns the places among the target's examples of those labelled."""
  if not path:
    return np.arange(0)
  labels = read_labels(path)
  return np.flatnonzero([name in labels for name in target.names])


def take_held(domains: Domains, path: str) -> Domain:
  """Returns the target's examples whose labels are held out, with these.

  Args:
    domains: as drawn, with matched classes.
    path: of the table.
  """
  _, held = _halve(read_labels(path))
  target, names = domains.target, domains.target.names
  chosen = np.flatnonzero([name in held for name in names])
  labels = [target.classes.index(held[names[i]]) for i in chosen]
  return target.take(chosen)._replace(labels=np.array(labels, np.int32))


def read_labels(path: str) -> dict[str, str]:
  """Reads a table of labels by example; raises `UserError` for a wrong one."""
  where = f'config.data.target_labels = {path!r}'
  try:
    text = pathlib.Path(path).expanduser().read_text(encoding='utf-8-sig')
    lines = list(csv.reader(text.splitlines(), strict=True))
  except (OSError, ValueError, csv.Error) as error:
    raise UserError(f'{where} cannot be read: {error}.') from error
  labels: dict[str, str] = {}
  for number, line in enumerate(lines, 1):
    cells = tuple(cell.strip() for cell in line)
    if not any(cells) or (number == 1 and cells == HEADER):
      continue
    if len(cells) != len(HEADER) or not cells[0]:
      raise UserError(
        f'{where}, line {number}: {",".join(line)!r} is not '
        f"'{','.join(HEADER)}'."
      )
    example, label = cells
    if example in labels:
      raise UserError(f'{where}, line {number}: {example!r} is there twice.')
    if label:
      labels[example] = label
  if len(labels) < 2:
    raise UserError(
      f'{where} has {len(labels)} labelled examples; at least 2 are needed, '
      'one to train and one to choose.'
    )
  return labels


def _check_labels(whole: Domains, path: str) -> dict[str, str]:
  """Reads the table; refuses examples and classes that are not there."""
  where = f'config.data.target_labels = {path!r}'
  labels = read_labels(path)
  names = set(whole.target.names)
  unknown = [name for name in labels if name not in names]
  if unknown:
    raise UserError(
      f'{where}: {len(unknown)} of {len(labels)} are not examples of the '
      f"target '{whole.target.name}', such as {unknown[0]!r}; these are "
      f'called like {whole.target.names[0]!r}.'
    )
  classes = {name for source in whole.sources for name in source.classes}
  wrong = [label for label in labels.values() if label not in classes]
  if wrong:
    raise UserError(
      f'{where}: {wrong[0]!r} is not a class; the sources have '
      f'{", ".join(sorted(classes))}.'
    )
  return labels


def _halve(labels: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
  """Returns labels to train on and those held out, by class in turns."""
  ordered = sorted(labels, key=lambda name: (labels[name], name))
  training, held = ordered[::2], ordered[1::2]
  return {n: labels[n] for n in training}, {n: labels[n] for n in held}
