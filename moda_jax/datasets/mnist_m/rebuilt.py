"""MNIST-M rebuilt from MNIST and photographs, by the published recipe.

|patch − digit| for each channel, where the digit is 255 wherever MNIST has any
ink. The originals are made the same way: each one that was examined, on plain
ground, is MNIST's image of the same number, inverted exactly where that is
above zero.
"""

import itertools
import os
import pathlib

import numpy as np

from moda_jax.datasets import digits, manual
from moda_jax.datasets.mnist_idx import mnist_idx_dataset_builder as mnist
from moda_jax.errors import UserError
from moda_jax.files import archives, images

INSTRUCTIONS = (
  'mnist_m/rebuilt needs photographs (BSDS500 was used for the original): put '
  'any folder of JPEG, PNG, BMP or WebP pictures, or an archive of them, into '
  "manual_dir as photographs/, next to MNIST's four idx files."
)
# The original leaves out the last of MNIST's images.
COUNTS = {'train': 59_001, 'test': 9_001}
SEED = 20_240_105


def find_photographs(manual_dir: os.PathLike[str]) -> pathlib.Path:
  """Finds the folder or archive `photographs`, or raises `MissingFile`."""
  folder = pathlib.Path(manual_dir, 'photographs')
  suffixes = ('', *archives.ARCHIVE_SUFFIXES)
  for path in (folder.with_name(folder.name + suffix) for suffix in suffixes):
    if path.exists():
      return path
  raise manual.MissingFile(f'missing: {folder}\n{INSTRUCTIONS}')


def generate(manual_dir: os.PathLike[str], split: str) -> digits.Examples:
  """Yields examples of a split; keys are the originals' file names."""
  drawings, labels = mnist.read_split(manual_dir, split)
  drawings, labels = drawings[: COUNTS[split]], labels[: COUNTS[split]]
  tree = find_photographs(manual_dir)
  names = list_photographs(tree)
  places = choose_places(split, len(drawings))
  chosen = (places[:, 0] * len(names)).astype(int)
  errors = []
  for member in archives.iter_members(tree):  # each is decoded once
    if not images.is_image_name(member.name):
      continue
    try:
      photograph = _read(member)
    except images.UnreadableImage as error:
      errors.append(error)
      continue
    for index in np.flatnonzero(chosen == names[member.name]):
      image = blend(cut_patch(photograph, places[index, 1:]), drawings[index])
      yield f'{index:08d}.png', {'image': image, 'label': int(labels[index])}
  images.refuse_unreadable(errors, len(names), tree)


def list_photographs(tree: pathlib.Path) -> dict[str, int]:
  """Numbers the pictures by name: the order in an archive does not matter."""
  names = sorted(member.name for member in archives.iter_members(tree))
  pictures = [name for name in names if images.is_image_name(name)]
  others = [name for name in names if not images.is_image_name(name)]
  images.warn_of_others(others, tree)
  if not pictures:
    raise manual.MissingFile(f'missing: pictures in {tree}\n{INSTRUCTIONS}')
  numbers = {name: number for number, name in enumerate(pictures)}
  if len(numbers) < len(pictures):  # as an archive may have it
    twice = next(a for a, b in itertools.pairwise(pictures) if a == b)
    raise UserError(f'{tree}: {twice} is there twice; leave one.')
  return numbers


def choose_places(split: str, count: int) -> np.ndarray:
  """Draws photograph, top and left for each digit, in 0..1: [count, 3]."""
  rng = np.random.RandomState([SEED, list(COUNTS).index(split)])
  return rng.uniform(size=(count, 3))


def _read(member: archives.Member) -> np.ndarray:
  image = images.decode(member.read(), member.name)
  if min(image.size) < digits.SIZE:
    width, height = image.size
    raise images.UnreadableImage(
      f'{member.name} ({width}×{height} is smaller than a digit)'
    )
  return np.asarray(images.to_rgb(image))


def cut_patch(photograph: np.ndarray, place: np.ndarray) -> np.ndarray:
  """Cuts [32, 32, 3] at `place`: top and left as shares of the room."""
  room = np.array(photograph.shape[:2]) - digits.SIZE + 1
  top, left = (place * room).astype(int)
  return photograph[top : top + digits.SIZE, left : left + digits.SIZE]


def blend(patch: np.ndarray, drawing: np.ndarray) -> np.ndarray:
  """Returns |patch − digit|.

  Args:
    patch: uint8 [32, 32, 3].
    drawing: MNIST's uint8 [28, 28].
  """
  ink = digits.pad_to_rgb(drawing) > 0
  return np.where(ink, 255 - patch, patch)
