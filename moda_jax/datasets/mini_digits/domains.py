"""The examples of the four domains."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from moda_jax.datasets import font_digits

from . import blending, drawings, fonts

Example = dict[str, Any]  # image, label, drawing


def _grey_examples(chosen: drawings.Drawings) -> Iterator[Example]:
  for drawing, pixels, label in zip(*chosen, strict=True):
    image = np.stack([pixels] * 3, axis=-1)
    yield {'image': image, 'label': int(label), 'drawing': int(drawing)}


def _mnist(split: str) -> Iterator[Example]:
  return _grey_examples(drawings.select(drawings.load_mnist(), split))


def _uci(split: str) -> Iterator[Example]:
  return _grey_examples(drawings.select(drawings.load_uci(), split))


def _mnistm(split: str) -> Iterator[Example]:
  photographs = blending.load_photographs(split)
  chosen = drawings.select(drawings.load_mnist(), split)
  for drawing, pixels, label in zip(*chosen, strict=True):
    patch = blending.choose_patch(photographs, int(drawing), drawings.SIZE)
    image = blending.blend(patch, pixels)
    yield {'image': image, 'label': int(label), 'drawing': int(drawing)}


def _synth(split: str) -> Iterator[Example]:
  for drawing in fonts.IDS[split]:
    number = fonts.choose_number(split, drawing)
    image = font_digits.print_number(number, drawings.SIZE)
    yield {'image': image, 'label': number.digit, 'drawing': drawing}


# Name → function of a split, `train` or `test`.
EXAMPLES = {'mnist': _mnist, 'uci': _uci, 'mnistm': _mnistm, 'synth': _synth}
