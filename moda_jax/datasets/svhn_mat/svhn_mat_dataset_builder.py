"""TFDS builder of SVHN's cropped digits from their original `.mat` files."""

import os
import pathlib
from typing import ClassVar

import tensorflow_datasets as tfds

from moda_jax.datasets import checksums, digits, manual

INSTRUCTIONS = (
  'SVHN: put train_32x32.mat and test_32x32.mat '
  '(http://ufldl.stanford.edu/housenumbers/) into manual_dir or its folder '
  'svhn/. With a network, TFDS fetches it itself: '
  '`python -c "import tensorflow_datasets as tfds; '
  "tfds.load('svhn_cropped')\"`."
)

_FOLDERS = ('svhn', 'svhn_mat')
_SPLITS = ('train', 'test')
_CITATION = """
@inproceedings{netzer2011reading,
  title={Reading digits in natural images with unsupervised feature learning},
  author={Netzer, Yuval and Wang, Tao and Coates, Adam and Bissacco, Alessandro
          and Wu, Bo and Ng, Andrew Y.},
  booktitle={NIPS Workshop on Deep Learning and Unsupervised Feature Learning},
  year={2011}
}
"""


class Builder(tfds.core.GeneratorBasedBuilder):
  """SVHN cropped digits; the files' label 10 becomes 0."""

  VERSION = tfds.core.Version('1.0.0')
  RELEASE_NOTES: ClassVar[dict[str, str]] = {'1.0.0': 'First release.'}
  MANUAL_DOWNLOAD_INSTRUCTIONS = INSTRUCTIONS

  def _info(self) -> tfds.core.DatasetInfo:
    return digits.make_info(
      self,
      'Street View House Numbers, cropped digits, from the .mat files.',
      'http://ufldl.stanford.edu/housenumbers/',
      _CITATION,
    )

  def _split_generators(
    self, dl_manager: tfds.download.DownloadManager
  ) -> dict[str, digits.Examples]:
    manual_dir = dl_manager.manual_dir
    manual.record_sources(self, find_sources(manual_dir))
    return {
      split: self._generate_examples(path)
      for split, path in _find(manual_dir).items()
    }

  def _generate_examples(self, path: pathlib.Path) -> digits.Examples:
    yield from digits.generate(*digits.read_mat_digits(path, 1, 10))


def _find(manual_dir: os.PathLike[str]) -> dict[str, pathlib.Path]:
  wanted = {split: (f'{split}_32x32.mat',) for split in _SPLITS}
  return manual.find_files(manual_dir, _FOLDERS, wanted, INSTRUCTIONS)


def find_sources(manual_dir: os.PathLike[str]) -> dict[str, manual.Source]:
  """Returns what is in `manual_dir`, or raises `MissingFile`."""
  sources = {}
  for split, path in _find(manual_dir).items():
    digest = checksums.sha256(path)
    sources[split] = manual.Source(
      file=manual.relative(path, manual_dir),
      sha256=digest,
      verified=digest == checksums.SVHN_SHA256[split],
    )
  return sources
