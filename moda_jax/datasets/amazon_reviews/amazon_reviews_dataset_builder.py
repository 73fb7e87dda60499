"""TFDS builder of Amazon Reviews: 5000 word counts per review, four domains."""

import os
import pathlib
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import tensorflow_datasets as tfds

from moda_jax.datasets import checksums, digits, manual
from moda_jax.errors import UserError
from moda_jax.files import raw_arrays

DOMAINS = ('books', 'dvd', 'electronics', 'kitchen')
INSTRUCTIONS = (
  'Amazon Reviews: put amazon.npz into manual_dir or its folder reviews/ '
  '(it comes with https://github.com/hanzhaoml/MDAN).'
)

_FOLDERS = ('reviews', 'amazon_reviews')
_DESCRIPTION = """
Amazon product reviews of four domains, as counts of the 5000 most frequent
unigrams and bigrams, with the sentiment of the review as label. The counts are
those of the file; TF-IDF is left to the reader, who alone knows which reviews
are for training. There is one split, `train`: every protocol draws its own.
"""
_CITATION = """
@inproceedings{chen2012marginalized,
  title={Marginalized denoising autoencoders for domain adaptation},
  author={Chen, Minmin and Xu, Zhixiang and Weinberger, Kilian Q. and Sha, Fei},
  booktitle={ICML},
  year={2012}
}
"""
_MAX_INT32 = np.iinfo(np.int32).max
_ARRAYS = ('xx_data', 'xx_row', 'xx_col', 'xx_shape', 'yy', 'offset')


class Builder(tfds.core.GeneratorBasedBuilder):
  """Sparse word counts and sentiment of the reviews of one domain."""

  VERSION = tfds.core.Version('1.0.0')
  RELEASE_NOTES: ClassVar[dict[str, str]] = {'1.0.0': 'First release.'}
  MANUAL_DOWNLOAD_INSTRUCTIONS = INSTRUCTIONS
  BUILDER_CONFIGS: ClassVar[list[tfds.core.BuilderConfig]] = [
    tfds.core.BuilderConfig(name=domain, description=f'Reviews of {domain}.')
    for domain in DOMAINS
  ]

  def _info(self) -> tfds.core.DatasetInfo:
    return tfds.core.DatasetInfo(
      builder=self,
      description=_DESCRIPTION,
      features=tfds.features.FeaturesDict(
        {
          'indices': tfds.features.Tensor(shape=(None,), dtype=np.int32),
          'counts': tfds.features.Tensor(shape=(None,), dtype=np.int32),
          'label': tfds.features.ClassLabel(names=['negative', 'positive']),
        }
      ),
      homepage='https://github.com/hanzhaoml/MDAN',
      citation=_CITATION,
      metadata=tfds.core.MetadataDict(),
    )

  def _split_generators(
    self, dl_manager: tfds.download.DownloadManager
  ) -> dict[str, Iterator[tuple[str, dict[str, Any]]]]:
    manual_dir = dl_manager.manual_dir
    manual.record_sources(self, find_sources(manual_dir))
    arrays = read_arrays(_find(manual_dir))
    self.info.metadata['features'] = int(arrays['xx_shape'][0])
    return {'train': self._generate_examples(arrays)}

  def _generate_examples(
    self, arrays: dict[str, np.ndarray]
  ) -> Iterator[tuple[str, dict[str, Any]]]:
    domain = DOMAINS.index(self.builder_config.name)
    first, last = arrays['offset'][domain : domain + 2]
    order = np.lexsort((arrays['xx_row'], arrays['xx_col']))
    features, counts = arrays['xx_row'][order], arrays['xx_data'][order]
    starts = np.searchsorted(
      arrays['xx_col'][order], np.arange(first, last + 1)
    )
    for review in range(first, last):
      here = slice(starts[review - first], starts[review - first + 1])
      yield (
        f'{review:06d}',
        {
          'indices': features[here],
          'counts': counts[here],
          'label': int(arrays['yy'][review] > 0),
        },
      )


def _find(manual_dir: os.PathLike[str]) -> pathlib.Path:
  wanted = {'all': ('amazon.npz',)}
  found = manual.find_files(manual_dir, _FOLDERS, wanted, INSTRUCTIONS)
  return found['all']


def find_sources(manual_dir: os.PathLike[str]) -> dict[str, manual.Source]:
  """Returns what is in `manual_dir`, or raises `MissingFile`."""
  path = _find(manual_dir)
  digest = checksums.sha256(path)
  source = manual.Source(
    file=manual.relative(path, manual_dir),
    sha256=digest,
    verified=digest == checksums.REVIEWS_SHA256,
  )
  return {'train': source}


def read_arrays(path: pathlib.Path) -> dict[str, np.ndarray]:
  """Reads the sparse matrix [features, reviews], labels, offsets; checked."""
  arrays = {
    name: array.ravel()
    for name, array in raw_arrays.read_npz(path, _ARRAYS).items()
  }
  for name in ('xx_shape', 'offset'):
    arrays[name] = _to_whole(path, name, arrays[name], 0, _MAX_INT32)
  shape, labels, offset = (arrays[name] for name in _ARRAYS[3:])
  if shape.shape != (2,) or (shape < 1).any():
    raise UserError(f'{path}: xx_shape is {shape}; two sizes are needed.')
  if (
    len(offset) != len(DOMAINS) + 1
    or (np.diff(offset) <= 0).any()
    or (offset[0], offset[-1]) != (0, shape[1])
  ):
    raise UserError(
      f'{path}: offset is {offset[:9]}; {len(DOMAINS) + 1} rising numbers '
      f'from 0 to {shape[1]} are needed.'
    )
  if len(labels) != shape[1]:
    raise UserError(f'{path}: {len(labels)} labels for {shape[1]} reviews.')
  digits.check_labels(np.abs(labels), 1, 1, f'{path}, |yy|')
  _check_entries(path, arrays)
  return arrays


def _check_entries(path: pathlib.Path, arrays: dict[str, np.ndarray]) -> None:
  names = ('xx_data', 'xx_row', 'xx_col')
  sizes = {len(arrays[name]) for name in names}
  if len(sizes) != 1:
    raise UserError(f'{path}: {", ".join(names)} differ in length: {sizes}.')
  limits = (_MAX_INT32, *(arrays['xx_shape'] - 1))
  lowest = (1, 0, 0)
  for name, low, high in zip(names, lowest, limits, strict=True):
    whole = _to_whole(path, name, arrays[name], low, high)
    arrays[name] = whole.astype(np.int32)
  entries = arrays['xx_col'].astype(np.int64) * arrays['xx_shape'][0]
  if len(np.unique(entries + arrays['xx_row'])) != len(entries):
    raise UserError(f'{path}: an entry of the matrix is given twice.')


def _to_whole(
  path: pathlib.Path, name: str, array: np.ndarray, low: int, high: int
) -> np.ndarray:
  """Returns the array as int64, whatever type of number the file has."""
  wrong = (array < low) | (array > high) | (array != np.floor(array))
  if wrong.any():
    raise UserError(
      f'{path}: {name} has {np.count_nonzero(wrong):,} values like '
      f'{array[wrong][0]}; whole numbers from {low} to {high} are needed.'
    )
  return array.astype(np.int64)
