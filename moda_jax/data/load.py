"""Loads a config's domains: read, drawn by seed, made ready for the network."""

import logging
from collections.abc import Sequence

import ml_collections
import numpy as np

from moda_jax.data import features, seeds
from moda_jax.data.domains import Domain, Domains
from moda_jax.data.read_files import FILE_READERS
from moda_jax.data.read_tfds import read_tfds
from moda_jax.errors import UserError

_log = logging.getLogger(__name__)


def load_domains(config: ml_collections.ConfigDict) -> Domains:
  """Loads what the config names; classes are not matched yet.

  `config.samples` training examples are drawn from every domain. `config.test`
  tells what is evaluated: the target's test split ('split'), its training
  examples themselves ('target'), or those that were not drawn ('rest').
  """
  return load_for_each([config])[0]


def load_for_each(
  configs: Sequence[ml_collections.ConfigDict],
) -> list[Domains]:
  """Loads for configs that differ in their seed alone, reading only once."""
  config = configs[0]
  sources = []  # of each source its draws
  for name in config.sources:
    source = _read(config, name)
    sources.append([_draw(source, c)[0] for c in configs])
  target = _read(config, config.target)
  targets = [_draw(target, c) for c in configs]
  if config.test == 'split':
    tests = [_read(config, config.target, 'test')] * len(configs)
  else:
    tests = [rest if config.test == 'rest' else own for own, rest in targets]
  if not tests[0].size:
    raise UserError(
      f"config.test = 'rest', but all {target.size} examples of the target "
      f"'{target.name}' are drawn by config.samples = {config.samples}; draw "
      'fewer.'
    )
  made = [
    Domains(own_sources, own_target, test)
    for own_sources, (own_target, _), test in zip(
      zip(*sources, strict=True), targets, tests, strict=True
    )
  ]
  _log_sizes(made[0])
  return [features.make_ready(domains, config) for domains in made]


def _read(
  config: ml_collections.ConfigDict, name: str, split: str = 'train'
) -> Domain:
  kind, _, path = config.datasets[name].partition(':')
  if kind not in FILE_READERS:
    return read_tfds(config, name, split)
  if split != 'train':
    raise UserError(
      f"config.test = 'split', but the target '{name}' is read from "
      f"{config.datasets[name]}, which has none; use 'target' or 'rest'."
    )
  return FILE_READERS[kind](name, path, config.image_size)


def _draw(
  domain: Domain, config: ml_collections.ConfigDict
) -> tuple[Domain, Domain]:
  """Draws `config.samples` examples at random; returns them and the rest."""
  count = config.samples
  if not count or count >= domain.size:
    return domain, domain.take(np.arange(0))
  rng = np.random.default_rng(seeds.domain_entropy(config.seed, domain.name))
  order = rng.permutation(domain.size)
  drawn, rest = np.sort(order[:count]), np.sort(order[count:])
  return domain.take(drawn), domain.take(rest)


def _log_sizes(domains: Domains) -> None:
  for domain in (*domains.sources, domains.target):
    role = 'target' if domain is domains.target else 'source'
    _log.info(
      '%s %s: %d examples of %s', role, domain.name, domain.size, domain.origin
    )
  if domains.test is domains.target:
    _log.info('test: the examples of the target themselves')
  else:
    _log.info('test %s: %d examples', domains.test.name, domains.test.size)
