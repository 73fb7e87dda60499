"""Which data set serves a domain, and making it from the files available."""

import contextlib
import dataclasses
import fcntl
import functools
import io
import os
import pathlib
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow_datasets as tfds
import tqdm
from google.protobuf import json_format

from moda_jax import cli
from moda_jax.datasets import checksums, manual
from moda_jax.datasets.amazon_reviews import (
  amazon_reviews_dataset_builder as amazon_reviews,
)
from moda_jax.datasets.mini_digits import (
  mini_digits_dataset_builder as mini_digits,
)
from moda_jax.datasets.mnist_idx import mnist_idx_dataset_builder as mnist_idx
from moda_jax.datasets.mnist_m import mnist_m_dataset_builder as mnist_m
from moda_jax.datasets.office31 import office31_dataset_builder as office31
from moda_jax.datasets.svhn_mat import svhn_mat_dataset_builder as svhn_mat
from moda_jax.datasets.synth_digits import (
  synth_digits_dataset_builder as synth_digits,
)
from moda_jax.errors import UserError

FindSources = Callable[[os.PathLike[str]], dict[str, manual.Source]]


@dataclasses.dataclass(frozen=True)
class Candidate:
  """A data set that may serve a domain."""

  dataset: str  # TFDS name
  find_sources: FindSources | None = None  # None: only if prepared by TFDS
  stands_in: str = ''  # what must be said when this one serves


def _made_on_the_spot(_: os.PathLike[str]) -> dict[str, manual.Source]:
  source = manual.Source(file='installed packages', sha256='')
  return {'train': source, 'test': source}


# Group → domain → data sets, of which the first available one serves.
GROUPS: dict[str, dict[str, tuple[Candidate, ...]]] = {
  'digits': {
    'mnist': (
      Candidate('mnist_idx', mnist_idx.find_sources),
      Candidate('mnist'),
    ),
    'mnistm': (
      Candidate(
        'mnist_m/original',
        functools.partial(mnist_m.find_sources, config='original'),
      ),
      Candidate(
        'mnist_m/rebuilt',
        functools.partial(mnist_m.find_sources, config='rebuilt'),
        stands_in='REBUILT with your photographs, not the original',
      ),
    ),
    'svhn': (
      Candidate('svhn_mat', svhn_mat.find_sources),
      Candidate('svhn_cropped'),
    ),
    'synth': (
      Candidate('synth_digits/original', synth_digits.find_sources),
      Candidate(
        'synth_digits/regenerated',
        lambda _: synth_digits.regenerated_sources(),
        stands_in='REGENERATED from fonts, not the original',
      ),
    ),
  },
  'office31': {
    domain: (Candidate(f'office31/{domain}', office31.find_sources),)
    for domain in office31.DOMAINS
  },
  'reviews': {
    domain: (
      Candidate(f'amazon_reviews/{domain}', amazon_reviews.find_sources),
    )
    for domain in amazon_reviews.DOMAINS
  },
  'mini': {
    config.name: (
      Candidate(
        f'mini_digits/{config.name}',
        _made_on_the_spot,
        stands_in='MINI, not the published data set',
      ),
    )
    for config in mini_digits.Builder.BUILDER_CONFIGS
  },
}


@dataclasses.dataclass
class Outcome:
  """What became of a domain."""

  domain: str
  status: str
  problem: str = ''  # why there is no data set, or why it is a stand-in
  candidate: Candidate | None = None
  builder: tfds.core.DatasetBuilder | None = None
  sources: dict[str, manual.Source] = dataclasses.field(default_factory=dict)


def prepare_domain(
  domain: str,
  candidates: tuple[Candidate, ...],
  manual_dir: pathlib.Path,
  data_dir: str | None,
) -> Outcome:
  """Prepares the first available candidate, unless it is prepared already."""
  problems = []
  for candidate in candidates:
    try:
      builder = open_builder(candidate.dataset, data_dir)
    except UserError as error:
      return Outcome(domain, 'refused', str(error))
    prepared = is_prepared(builder)
    sources = {}
    if candidate.find_sources is not None:
      try:
        sources = candidate.find_sources(manual_dir)
      except manual.MissingFile as error:
        problems.append(str(error))
      except (UserError, OSError) as error:
        if not prepared:
          return Outcome(domain, 'refused', str(error))
    if not sources and not prepared:
      continue
    outcome = Outcome(
      domain, 'prepared', '\n'.join(problems), candidate, builder, sources
    )
    if prepared:
      outcome.status = _status_of_prepared(builder, sources)
      outcome.sources = _sources_of_prepared(builder, sources)
    else:
      try:
        make(builder, manual_dir)
      except (UserError, OSError) as error:
        return Outcome(domain, 'refused', str(error))
    return outcome
  return Outcome(domain, 'missing', '\n'.join(problems))


def open_builder(name: str, data_dir: str | None) -> tfds.core.DatasetBuilder:
  """Returns a data set's builder; what it has prepared may be damaged."""
  try:
    return tfds.builder(name, data_dir=data_dir)
  except (json_format.ParseError, RuntimeError) as error:
    # TFDS wraps what it does not know how to raise again.
    is_text = not isinstance(error.__cause__, UnicodeDecodeError)
    if isinstance(error, RuntimeError) and is_text:
      raise
    folder = pathlib.Path(data_dir or tfds.core.constants.DATA_DIR, name)
    reason = str(error).rpartition('}": ')[2]
    raise UserError(
      f'The dataset_info.json of {name} is damaged: {reason} Delete its '
      f'folder, {folder.expanduser()}, and prepare it again.'
    ) from error


def is_prepared(builder: tfds.core.DatasetBuilder) -> bool:
  """Asks TFDS, but avoids its warning about a missing folder."""
  return builder.data_path.exists() and builder.is_prepared()


def _status_of_prepared(
  builder: tfds.core.DatasetBuilder, sources: dict[str, manual.Source]
) -> str:
  recorded = manual.recorded_sources(builder)
  if any(
    sources[split].sha256 != recorded[split].sha256
    for split in sources.keys() & recorded.keys()
  ):
    return (
      'already prepared, but from other files than those there now: delete '
      f'{builder.data_dir} to prepare it again'
    )
  return 'already prepared'


def _sources_of_prepared(
  builder: tfds.core.DatasetBuilder, sources: dict[str, manual.Source]
) -> dict[str, manual.Source]:
  """What it was made from; the same files there now may be known better."""
  recorded = manual.recorded_sources(builder)
  same = {
    split: source
    for split, source in sources.items()
    if split in recorded and source.sha256 == recorded[split].sha256
  }
  return recorded | same or sources


def make(
  builder: tfds.core.DatasetBuilder, manual_dir: pathlib.Path | None = None
) -> None:
  """Makes a data set, clearing away what a killed attempt left."""
  for leftover in builder.data_path.parent.glob('incomplete.*'):
    shutil.rmtree(leftover)  # of a preparation that was killed
  config = tfds.download.DownloadConfig(manual_dir=manual_dir)
  tfds.disable_progress_bar()  # it has one for each split and stage
  with (
    _show_examples(builder),
    contextlib.redirect_stdout(io.StringIO()),  # TFDS reports downloads
  ):
    builder.download_and_prepare(download_config=config)


@contextlib.contextmanager
def _show_examples(builder: tfds.core.DatasetBuilder) -> Iterator[None]:
  """Shows one bar of all examples while the builder generates them."""
  generate = builder._generate_examples
  name = builder.info.full_name.rpartition('/')[0]
  counts = checksums.ORIGINAL_COUNTS.get(name, {})
  with tqdm.tqdm(
    desc=name,
    total=sum(counts.values()) or None,
    unit=' examples',
    file=sys.stderr,
    disable=not (cli.in_notebook() or sys.stderr.isatty()),
  ) as bar:

    def count(*args: Any, **options: Any) -> Iterator[Any]:
      for example in generate(*args, **options):
        bar.update()
        yield example

    builder._generate_examples = count
    try:
      yield
    finally:
      del builder._generate_examples  # the class's own is left


@contextlib.contextmanager
def lock(data_dir: pathlib.Path, wait: bool = False) -> Iterator[None]:
  """Keeps two preparations from writing to one `data_dir`."""
  try:
    data_dir.mkdir(parents=True, exist_ok=True)
    file = open(data_dir / '.prepare.lock', 'w')  # noqa: SIM115
  except OSError as error:
    raise UserError(f'cannot write to the data_dir: {error}') from error
  with file:
    try:
      fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError as error:
      raise UserError(
        f'another preparation is writing to {data_dir}; wait until it ends.'
      ) from error
    yield
