"""Domains: a name in the config to examples in memory."""

import logging
import pathlib
from typing import NamedTuple

import ml_collections
import numpy as np
import tensorflow_datasets as tfds

from moda_jax.data import seeds
from moda_jax.datasets import preparation
from moda_jax.errors import UserError

_log = logging.getLogger(__name__)


class Domain(NamedTuple):
  """The examples of one domain, in memory.

  Attributes:
    name: as in the config.
    origin: the TFDS name they come from.
    inputs: `[N, …]`, images as uint8.
    labels: `[N]` int32.
    classes: the class names.
  """

  name: str
  origin: str
  inputs: np.ndarray
  labels: np.ndarray
  classes: tuple[str, ...]


class Domains(NamedTuple):
  """All that an experiment reads.

  Attributes:
    sources: the labelled training examples, in the config's order.
    target: the target's training examples. Its labels go to no batch unless
      the method declares that it reads them.
    test: the target's test examples.
  """

  sources: tuple[Domain, ...]
  target: Domain
  test: Domain

  def describe(self) -> dict[str, str]:
    """Says in a word what each domain is served by."""
    return {
      domain.name: f'{domain.origin}, {len(domain.labels)} examples'
      for domain in (*self.sources, self.target)
    }

  @property
  def num_classes(self) -> int:
    """The number of classes, the same in every domain."""
    return len(self.target.classes)


def load_domains(config: ml_collections.ConfigDict) -> Domains:
  """Loads the config's domains, subsets drawn by its seed."""
  train = {
    name: _load_training_domain(config, name)
    for name in (*config.sources, config.target)
  }
  domains = Domains(
    sources=tuple(train[name] for name in config.sources),
    target=train[config.target],
    test=_load(config, config.target, 'test'),
  )
  for domain in (*domains.sources, domains.target):
    role = 'target' if domain is domains.target else 'source'
    _log.info(
      '%s %s: %d examples of %s',
      role,
      domain.name,
      len(domain.labels),
      domain.origin,
    )
  _log.info('test %s: %d examples', config.target, len(domains.test.labels))
  return domains


def _load_training_domain(
  config: ml_collections.ConfigDict, name: str
) -> Domain:
  domain = _load(config, name, 'train')
  count = len(domain.labels)
  if not config.samples or config.samples >= count:
    return domain
  rng = np.random.default_rng(seeds.domain_entropy(config.seed, name))
  chosen = np.sort(rng.permutation(count)[: config.samples])
  return domain._replace(
    inputs=domain.inputs[chosen], labels=domain.labels[chosen]
  )


def _load(config: ml_collections.ConfigDict, name: str, split: str) -> Domain:
  builder = _prepared_builder(config, name)
  loaded = builder.as_dataset(split=split, batch_size=-1)
  return Domain(
    name=name,
    origin=builder.info.full_name,
    inputs=_conform(loaded['image'].numpy()),
    labels=loaded['label'].numpy().astype(np.int32),
    classes=tuple(builder.info.features['label'].names),
  )


def _prepared_builder(
  config: ml_collections.ConfigDict, name: str
) -> tfds.core.DatasetBuilder:
  """The first of the domain's data sets that is prepared."""
  candidates = config.datasets[name].replace(' ', '').split(',')
  for candidate in candidates:
    builder = _create_builder(candidate, config.data_dir, name)
    if preparation.is_prepared(builder):
      return builder
    if getattr(builder, 'MADE_LOCALLY', False):
      _log.info('making %s, once (%s)', candidate, builder.data_dir)
      _make_once(builder)
      return builder
  raise UserError(
    f"The domain '{name}' is not prepared: none of {', '.join(candidates)} is "
    f'in {builder._data_dir_root}. Prepare it with\n'
    f'  python -m moda_jax.prepare {config.experiment} '
    '--manual_dir=FOLDER_WITH_THE_FILES\n'
    'or name another place with --config.data_dir or TFDS_DATA_DIR, or another '
    f'data set with --config.datasets.{name}=TFDS_NAME, such as a stand-in '
    'that prepare has made, see its table.'
  )


def _make_once(builder: tfds.core.DatasetBuilder) -> None:
  """Makes a data set unless another process has done so meanwhile."""
  folder = pathlib.Path(builder._data_dir_root)
  try:
    with preparation.lock(folder, wait=True):
      if not preparation.is_prepared(builder):
        preparation.make(builder)
  except OSError as error:
    raise UserError(
      f'{builder.info.full_name} cannot be made in {folder}: {error}. Choose '
      'another place with --config.data_dir or TFDS_DATA_DIR.'
    ) from error


def _create_builder(
  candidate: str, data_dir: str, name: str
) -> tfds.core.DatasetBuilder:
  try:
    return tfds.builder(candidate, data_dir=data_dir or None)
  except (tfds.core.DatasetNotFoundError, ValueError) as error:
    reason = str(error).splitlines()[0]
    raise UserError(
      f"config.datasets.{name}: '{candidate}' is no TFDS data set: {reason}"
    ) from error


def _conform(images: np.ndarray) -> np.ndarray:
  """MNIST as TFDS has it, 28 × 28 grey, to 32 × 32 in colour."""
  if images.shape[1:3] == (28, 28):
    images = np.pad(images, ((0, 0), (2, 2), (2, 2), (0, 0)))
  if images.shape[-1] == 1:
    images = np.repeat(images, 3, axis=-1)
  return images


def check_classes(domains: Domains) -> None:
  """Refuses domains of different classes, or of one alone."""
  labelled = {int(y) for d in domains.sources for y in np.unique(d.labels)}
  if domains.num_classes < 2 or len(labelled) < 2:
    raise UserError(
      f"The target '{domains.target.name}' has the classes "
      f'{domains.target.classes}, and the sources have examples of '
      f'{len(labelled)} of them: a single class, where at least 2 are needed.'
    )
  for domain in (*domains.sources, domains.target, domains.test):
    if not len(domain.labels):
      raise UserError(f"The domain '{domain.name}' has no examples.")
  for domain in domains.sources:
    if domain.classes != domains.target.classes:
      raise UserError(
        f"The source '{domain.name}' has the classes {domain.classes}, the "
        f"target '{domains.target.name}' {domains.target.classes}; they must "
        'be the same.'
      )
