"""One image of the regenerated set, and a process that draws many."""

import io
import os
import struct
import sys
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np
from PIL import Image

from moda_jax.datasets import digits, font_digits

SEED = 20_240_104
LENGTH = struct.Struct('<I')

_SPLITS = ('train', 'test')


def draw(split: str, index: int) -> np.ndarray:
  """Draws image `index` of a split, uint8 [32, 32, 3]; it shows index % 10."""
  rng = np.random.RandomState([SEED, _SPLITS.index(split), index])
  number = font_digits.choose_number(rng, index % 10)
  return font_digits.print_number(number, digits.SIZE)


def write_pngs(split: str, indices: Sequence[int], output: BinaryIO) -> None:
  """Writes each image as four bytes of length and a PNG."""
  for index in indices:
    png = io.BytesIO()
    Image.fromarray(draw(split, index)).save(png, 'PNG')
    output.write(LENGTH.pack(png.tell()))
    output.write(png.getvalue())


def main() -> None:
  """Draws to standard output; arguments: split, first, stop, step."""
  split, *numbers = sys.argv[1:]
  try:
    write_pngs(split, range(*map(int, numbers)), sys.stdout.buffer)
  except BrokenPipeError:  # the process that wanted them has ended
    os._exit(1)
