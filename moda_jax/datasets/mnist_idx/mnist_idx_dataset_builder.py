"""TFDS builder of MNIST from its four original idx files."""

import os
import pathlib
from typing import ClassVar

import numpy as np
import tensorflow_datasets as tfds

from moda_jax.datasets import checksums, digits, manual
from moda_jax.errors import UserError
from moda_jax.files import raw_arrays

INSTRUCTIONS = (
  'MNIST: put train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, '
  't10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz into manual_dir or '
  'its folder mnist/ (https://storage.googleapis.com/cvdf-datasets/mnist/ has '
  'them). With a network, TFDS fetches it itself: '
  '`python -c "import tensorflow_datasets as tfds; tfds.load(\'mnist\')"`.'
)

_FOLDERS = ('mnist', 'mnist_idx')
_PREFIXES = {'train': 'train', 'test': 't10k'}
_CITATION = """
@article{lecun1998gradient,
  title={Gradient-based learning applied to document recognition},
  author={LeCun, Yann and Bottou, L{\\'e}on and Bengio, Yoshua and Haffner, P.},
  journal={Proceedings of the IEEE},
  volume={86},
  number={11},
  pages={2278--2324},
  year={1998}
}
"""


class Builder(tfds.core.GeneratorBasedBuilder):
  """MNIST, in a black frame of two pixels and as RGB: 32×32×3."""

  VERSION = tfds.core.Version('1.0.0')
  RELEASE_NOTES: ClassVar[dict[str, str]] = {'1.0.0': 'First release.'}
  MANUAL_DOWNLOAD_INSTRUCTIONS = INSTRUCTIONS

  def _info(self) -> tfds.core.DatasetInfo:
    return digits.make_info(
      self,
      'MNIST from its original idx files, padded by two pixels to 32×32, RGB.',
      'http://yann.lecun.com/exdb/mnist/',
      _CITATION,
    )

  def _split_generators(
    self, dl_manager: tfds.download.DownloadManager
  ) -> dict[str, digits.Examples]:
    manual_dir = dl_manager.manual_dir
    manual.record_sources(self, find_sources(manual_dir))
    return {
      split: self._generate_examples(manual_dir, split) for split in _PREFIXES
    }

  def _generate_examples(
    self, manual_dir: os.PathLike[str], split: str
  ) -> digits.Examples:
    for key, example in digits.generate(*read_split(manual_dir, split)):
      example['image'] = digits.pad_to_rgb(example['image'])
      yield key, example


def _find(manual_dir: os.PathLike[str]) -> dict[str, pathlib.Path]:
  """Finds the files, compressed or not, by keys such as 'train-images'."""
  wanted = {
    f'{prefix}-{part}': [
      f'{prefix}-{part}{separator}idx{rank}-ubyte{suffix}'
      for suffix in ('.gz', '')
      for separator in '-.'
    ]
    for prefix in _PREFIXES.values()
    for part, rank in (('images', 3), ('labels', 1))
  }
  return manual.find_files(manual_dir, _FOLDERS, wanted, INSTRUCTIONS)


def read_split(
  manual_dir: os.PathLike[str], split: str
) -> tuple[np.ndarray, np.ndarray]:
  """Reads images uint8 [N, 28, 28] and labels [N], checked."""
  files = _find(manual_dir)
  image_file = files[f'{_PREFIXES[split]}-images']
  label_file = files[f'{_PREFIXES[split]}-labels']
  images, _ = raw_arrays.read_idx(image_file)
  labels, _ = raw_arrays.read_idx(label_file)
  if images.shape[1:] != (28, 28) or labels.ndim != 1:
    raise UserError(
      f'{image_file}: shape {images.shape} with labels {labels.shape}; '
      '(N, 28, 28) and (N,) are needed.'
    )
  if len(images) != len(labels):
    raise UserError(
      f'{image_file} holds {len(images):,} images but {label_file} '
      f'{len(labels):,} labels.'
    )
  digits.check_labels(labels, 0, 9, label_file)
  return images, labels


def find_sources(manual_dir: os.PathLike[str]) -> dict[str, manual.Source]:
  """Returns what is in `manual_dir`, or raises `MissingFile`."""
  files = _find(manual_dir)
  sources = {}
  for split, prefix in _PREFIXES.items():
    digests = {
      key: raw_arrays.read_idx(path)[1]
      for key, path in files.items()
      if key.startswith(prefix)
    }
    sources[split] = manual.Source(
      file=manual.relative(files[f'{prefix}-images'], manual_dir),
      sha256=digests[f'{prefix}-images'],
      verified=digests.items() <= checksums.MNIST_SHA256.items(),
    )
  return sources
