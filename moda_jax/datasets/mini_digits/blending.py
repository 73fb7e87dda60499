"""Digits blended with photographs, after the recipe of MNIST-M.

The test split is blended with photographs that no training digit meets.
"""

import numpy as np

from . import packages

# (package, file) of photographs inside the wheels; each side has grey ones too.
# Fine mid-grey textures (grass, gravel) are left out: white minus grey is grey,
# so that nobody could read the digit.
PHOTOGRAPHS = {
  'train': (
    ('sklearn', 'datasets/images/china.jpg'),
    ('sklearn', 'datasets/images/flower.jpg'),
    ('skimage', 'data/brick.png'),
    ('skimage', 'data/camera.png'),
    ('skimage', 'data/ihc.png'),
    ('skimage', 'data/motorcycle_left.png'),
    ('skimage', 'data/rocket.jpg'),
  ),
  'test': (
    ('skimage', 'data/astronaut.png'),
    ('skimage', 'data/chelsea.png'),
    ('skimage', 'data/coffee.png'),
    ('skimage', 'data/coins.png'),
  ),
}

_BLEND_SEED = 20_240_102


def load_photographs(split: str) -> list[np.ndarray]:
  """Reads the photographs of a split as uint8 [height, width, 3]."""
  return [
    np.asarray(packages.read_picture(package, path))
    for package, path in PHOTOGRAPHS[split]
  ]


def choose_patch(
  photographs: list[np.ndarray], drawing: int, size: int
) -> np.ndarray:
  """Cuts the square patch that belongs to the drawing with this id."""
  rng = np.random.RandomState([_BLEND_SEED, drawing])
  photograph = photographs[rng.randint(len(photographs))]
  top = rng.randint(photograph.shape[0] - size + 1)
  left = rng.randint(photograph.shape[1] - size + 1)
  return photograph[top : top + size, left : left + size]


def blend(patch: np.ndarray, pixels: np.ndarray) -> np.ndarray:
  """Returns |patch − digit| for each channel.

  Args:
    patch: uint8 [H, W, 3].
    pixels: uint8 [H, W], white on black.
  """
  difference = patch.astype(np.int16) - pixels[:, :, np.newaxis]
  return np.abs(difference).astype(np.uint8)
