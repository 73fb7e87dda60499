"""TFDS builder of MNIST-M: the original files, or rebuilt by its recipe."""

import os
import pathlib
from typing import ClassVar

import tensorflow_datasets as tfds

from moda_jax.datasets import checksums, digits, manual
from moda_jax.datasets.mnist_idx import mnist_idx_dataset_builder
from moda_jax.datasets.mnist_m import original, rebuilt

INSTRUCTIONS = (
  'MNIST-M: put mnist_m.tar.gz, or what it unpacks to, into manual_dir or its '
  'folder mnist_m/ (http://yaroslav.ganin.net/ says where it is; others got '
  'it from https://drive.google.com/drive/folders/0B_tExHiYS-0vR2dNZEU4NGlSSW8).'
)

_FOLDERS = ('mnist_m', 'MNIST_M')
_SPLITS = ('train', 'test')
_MARKER = 'mnist_m_train_labels.txt'
_DESCRIPTIONS = {
  'original': 'MNIST-M as published: MNIST digits over photographs.',
  'rebuilt': """
REBUILT, not the original MNIST-M: made from MNIST and the user's photographs by
the published recipe. The digits are the original's, the backgrounds are not.
""",
}
_CITATION = """
@inproceedings{ganin2015unsupervised,
  title={Unsupervised domain adaptation by backpropagation},
  author={Ganin, Yaroslav and Lempitsky, Victor},
  booktitle={ICML},
  year={2015}
}
"""


class Builder(tfds.core.GeneratorBasedBuilder):
  """MNIST digits blended with photographs."""

  VERSION = tfds.core.Version('1.0.0')
  RELEASE_NOTES: ClassVar[dict[str, str]] = {'1.0.0': 'First release.'}
  MANUAL_DOWNLOAD_INSTRUCTIONS = f'{INSTRUCTIONS} {rebuilt.INSTRUCTIONS}'
  BUILDER_CONFIGS: ClassVar[list[tfds.core.BuilderConfig]] = [
    tfds.core.BuilderConfig(name=name, description=description)
    for name, description in _DESCRIPTIONS.items()
  ]

  def _info(self) -> tfds.core.DatasetInfo:
    return digits.make_info(
      self,
      _DESCRIPTIONS[self.builder_config.name],
      'http://yaroslav.ganin.net/',
      _CITATION,
    )

  def _split_generators(
    self, dl_manager: tfds.download.DownloadManager
  ) -> dict[str, digits.Examples]:
    manual_dir = dl_manager.manual_dir
    config = self.builder_config.name
    manual.record_sources(self, find_sources(manual_dir, config))
    return {
      split: self._generate_examples(manual_dir, split) for split in _SPLITS
    }

  def _generate_examples(
    self, manual_dir: os.PathLike[str], split: str
  ) -> digits.Examples:
    if self.builder_config.name == 'rebuilt':
      yield from rebuilt.generate(manual_dir, split)
    else:
      yield from original.generate(_find(manual_dir), split)


def _find(manual_dir: os.PathLike[str]) -> pathlib.Path:
  return manual.find_tree(
    manual_dir,
    _FOLDERS,
    lambda root: (root / _MARKER).exists(),
    f'a folder with {_MARKER} in it',
    ('mnist_m*', 'mnist-m*'),
    INSTRUCTIONS,
  )


def find_sources(
  manual_dir: os.PathLike[str], config: str
) -> dict[str, manual.Source]:
  """Returns what is in `manual_dir`, or raises `MissingFile`."""
  if config == 'rebuilt':
    mnist_idx_dataset_builder.find_sources(manual_dir)  # or MissingFile
    tree = rebuilt.find_photographs(manual_dir)
    digest = checksums.sha256(tree)
  else:
    tree = _find(manual_dir)
    digest = checksums.sha256(tree, original.ENTRIES)
  source = manual.Source(manual.relative(tree, manual_dir), digest)
  return dict.fromkeys(_SPLITS, source)
