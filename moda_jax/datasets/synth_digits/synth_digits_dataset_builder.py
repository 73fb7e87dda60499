"""TFDS builder of SynthDigits: the original files, or a set regenerated."""

import os
import pathlib
from typing import ClassVar

import tensorflow_datasets as tfds

from moda_jax.datasets import checksums, digits, manual
from moda_jax.datasets.synth_digits import draw, regenerated

INSTRUCTIONS = (
  'SynthDigits: put synth_train_32x32.mat and synth_test_32x32.mat into '
  'manual_dir or its folder synth_digits/. Their public links are dead; '
  '`synth_digits/regenerated` is made without them.'
)

_FOLDERS = ('synth_digits', 'synth')
_SPLITS = ('train', 'test')
_DESCRIPTIONS = {
  'original': 'SynthDigits as published, from the .mat files.',
  'regenerated': """
REGENERATED, not the original SynthDigits: 50,000 and 10,000 images drawn from
fonts after its description. Numbers of one to three digits, the centre digit is
the label; random position, rotation, colours of background and strokes, blur.
Figures on it are not comparable with published ones.
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
  """SynthDigits: `original` from files, `regenerated` from fonts."""

  VERSION = tfds.core.Version('1.0.0')
  RELEASE_NOTES: ClassVar[dict[str, str]] = {'1.0.0': 'First release.'}
  MANUAL_DOWNLOAD_INSTRUCTIONS = INSTRUCTIONS
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
    if self.builder_config.name == 'regenerated':
      manual.record_sources(self, regenerated_sources())
      return {split: regenerated.generate(split) for split in _SPLITS}
    manual_dir = dl_manager.manual_dir
    manual.record_sources(self, find_sources(manual_dir))
    return {
      split: self._generate_examples(path)
      for split, path in _find(manual_dir).items()
    }

  def _generate_examples(self, path: pathlib.Path) -> digits.Examples:
    yield from digits.generate(*digits.read_mat_digits(path, 0, 9))


def _find(manual_dir: os.PathLike[str]) -> dict[str, pathlib.Path]:
  wanted = {split: (f'synth_{split}_32x32.mat',) for split in _SPLITS}
  return manual.find_files(manual_dir, _FOLDERS, wanted, INSTRUCTIONS)


def find_sources(manual_dir: os.PathLike[str]) -> dict[str, manual.Source]:
  """Returns what is in `manual_dir`, or raises `MissingFile`."""
  return {
    split: manual.Source(
      file=manual.relative(path, manual_dir), sha256=checksums.sha256(path)
    )
    for split, path in _find(manual_dir).items()
  }


def regenerated_sources() -> dict[str, manual.Source]:
  """Returns the fonts and the seed: the regenerated set needs no files."""
  source = manual.Source(file=f'fonts, seed {draw.SEED}', sha256='')
  return dict.fromkeys(_SPLITS, source)
