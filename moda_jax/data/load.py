"""Loads a config's domains: read, drawn by seed, prepared for the network."""

import logging
from collections.abc import Sequence

import ml_collections
import numpy as np

from moda_jax.data import features, seeds
from moda_jax.data.domains import Domain, Domains, labelled_name
from moda_jax.data.fingerprints import fingerprint
from moda_jax.data.labelled import find_labelled
from moda_jax.data.memory import hold_or_stream
from moda_jax.data.read_files import FILE_READERS, skip_unreadable
from moda_jax.data.read_tfds import read_tfds
from moda_jax.errors import UserError

_log = logging.getLogger(__name__)


def load_domains(config: ml_collections.ConfigDict) -> Domains:
  """Loads what the config names; classes are not matched yet.

  `data.samples` training examples are drawn from every domain, and
  `data.evaluate_on` says what is evaluated, see `data.options`.
  """
  return load_for_each([config], open_domains(config))[0]


def load_for_each(
  configs: Sequence[ml_collections.ConfigDict], whole: Domains
) -> list[Domains]:
  """Draws and prepares for configs that differ in their seed alone.

  Args:
    configs: one for each run.
    whole: the whole domains, see `open_domains`.
  """
  data = configs[0].data
  drawn = [draw(whole, config) for config in configs]
  _log_sizes(drawn[0])
  drawn = hold_or_stream(drawn, data)
  return [features.prepare_inputs(domains, data) for domains in drawn]


def prepare_target(
  config: ml_collections.ConfigDict, whole: Domains, examples: Domain
) -> Domain:
  """Returns examples of the target as the network of a run takes them.

  Args:
    config: of the run.
    whole: the whole domains; words are weighted as in those that it draws.
    examples: of the target.
  """
  domains = Domains((), examples, examples)
  if config.data.features == 'tfidf':
    domains = draw(whole, config)._replace(test=examples, held=())
  (domains,) = hold_or_stream([domains], config.data)
  return features.prepare_inputs(domains, config.data).test


def open_domains(config: ml_collections.ConfigDict) -> Domains:
  """Opens the whole domains that a config names.

  Pictures in folders are listed and not read yet, see `PictureFiles`. Labelled
  examples of the target are not among them, see `labelled.add_source`.
  """
  data = config.data
  extra = labelled_name(data.target) if data.target_labels else ''
  names = [name for name in data.sources if name != extra]
  sources = tuple(_read(config, name) for name in names)
  target = test = _read(config, data.target)
  if data.evaluate_on == 'test_split':
    test = _read(config, data.target, 'test')
  return Domains(sources, target, test)


def draw(domains: Domains, config: ml_collections.ConfigDict) -> Domains:
  """Draws the training examples and what is evaluated, see `load_domains`."""
  data, seed = config.data, config.run.seed
  extra = labelled_name(data.target) if data.target_labels else ''
  few = [source for source in domains.sources if source.name == extra]
  sources = [
    _draw(source, data, seed)[0]
    for source in domains.sources
    if source.name != extra
  ]
  labelled = find_labelled(domains.target, data.target_labels)
  target, rest = _draw(domains.target, data, seed, labelled)
  tests = {
    'test_split': domains.test,
    'target': _leave_out(target, data.target_labels),
    'undrawn': rest,
  }
  test = tests[data.evaluate_on]
  if not test.size:
    raise UserError(
      f"config.data.evaluate_on = 'undrawn', but all {target.size} examples of "
      f"the target '{target.name}' are drawn by config.data.samples = "
      f'{data.samples}; draw fewer.'
    )
  held: list[Domain] = []
  if data.holdout:
    parts = [_hold_back(source, data.holdout, seed) for source in sources]
    sources, held = [p[0] for p in parts], [p[1] for p in parts]
  return Domains((*sources, *few), target, test, tuple(held))


def _hold_back(
  domain: Domain, share: float, seed: int
) -> tuple[Domain, Domain]:
  """Returns the examples of a source to train on, and those held out."""
  count = max(1, round(share * domain.size))
  if count >= domain.size:
    raise UserError(
      f"config.data.holdout = {share} leaves '{domain.name}', which has "
      f'{domain.size} examples, none to train on.'
    )
  return _split(domain, domain.size - count, seed, stream=f'{domain.name}/held')


def _leave_out(target: Domain, path: str) -> Domain:
  """Returns the target without its labelled examples, itself without any."""
  labelled = find_labelled(target, path)
  if not labelled.size:
    return target
  if labelled.size == target.size:
    raise UserError(
      f'config.data.target_labels = {path!r} labels all {target.size} examples '
      f"of the target '{target.name}': none is left to evaluate on."
    )
  return target.take(np.setdiff1d(np.arange(target.size), labelled))


def hold_out(domains: Domains, seed: int) -> Domains:
  """Splits a target that is its own test set: 80 % to train on, 20 % to test.

  For a method that is trained on the labels of what it would be tested on.
  """
  if domains.test is not domains.target:
    return domains
  count = domains.target.size * 4 // 5
  target, test = _split(domains.target, count, seed)
  _log.info('test: %d of the target are held out', test.size)
  return domains._replace(target=target, test=test)


def _read(
  config: ml_collections.ConfigDict, name: str, split: str = 'train'
) -> Domain:
  kind, _, path = config.data.datasets[name].partition(':')
  if kind not in FILE_READERS:
    return read_tfds(config, name, split)
  if split != 'train':
    raise UserError(
      f"config.data.evaluate_on = 'test_split', but the target '{name}' is "
      f'read from {config.data.datasets[name]}, which has none; use '
      "'target' or 'undrawn'."
    )
  domain = FILE_READERS[kind](name, path)
  if config.data.skip_unreadable:
    domain = skip_unreadable(domain)
  return domain._replace(fingerprint=fingerprint(domain))


def _draw(
  domain: Domain,
  data: ml_collections.ConfigDict,
  seed: int,
  always: np.ndarray | None = None,
) -> tuple[Domain, Domain]:
  """Draws `data.samples` examples at random; returns them and the rest.

  Args:
    domain: the whole domain.
    data: the section of the config.
    seed: of the draw.
    always: places of examples that are drawn in any case.
  """
  count = data.samples
  if count > domain.size:
    raise UserError(
      f"config.data.samples = {count}, but '{domain.name}' has {domain.size} "
      'examples; draw as many or fewer, or 0, which takes all of every domain.'
    )
  if not count or count == domain.size:
    return domain, domain.take(np.arange(0))
  return _split(domain, count, seed, always)


def _split(
  domain: Domain,
  count: int,
  seed: int,
  always: np.ndarray | None = None,
  stream: str = '',
) -> tuple[Domain, Domain]:
  """Returns `count` examples at random, and the others."""
  entropy = seeds.domain_entropy(seed, stream or domain.name)
  rng = np.random.default_rng(entropy)
  order = rng.permutation(domain.size)
  if always is not None:
    if count < len(always):
      raise UserError(
        f'config.data.samples = {count}, but {len(always)} examples of '
        f"'{domain.name}' are labelled; draw as many or more."
      )
    order = np.append(always, order[~np.isin(order, always)])
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
  if domains.held:
    held = ', '.join(f'{d.size} of {d.name}' for d in domains.held)
    _log.info('held out of training: %s', held)
  else:
    _log.info(
      'held out of training: none (holdout=0.1 keeps a tenth of every source, '
      'for the criteria source_accuracy, weighted_accuracy and dev_risk)'
    )
