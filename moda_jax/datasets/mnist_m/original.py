"""MNIST-M as published: 32×32 PNGs and a list of labels for each split."""

import pathlib
import re

import numpy as np

from moda_jax.datasets import digits
from moda_jax.errors import UserError
from moda_jax.files import archives, images

ENTRIES = (
  'mnist_m_train',
  'mnist_m_test',
  'mnist_m_train_labels.txt',
  'mnist_m_test_labels.txt',
)

_LINE = re.compile(r'(\S+\.png)\s+(\d+)')


def generate(tree: pathlib.Path, split: str) -> digits.Examples:
  """Yields examples of a split, from an archive or unpacked folder.

  Keys are the files' names, so both give the same data set.
  """
  labels = read_labels(tree, split)
  waiting = set(labels)
  errors: list[UserError | str] = []
  others = []
  for member in archives.iter_members(tree, ENTRIES):
    folder, name = ('', *member.parts)[-2:]
    if folder != f'mnist_m_{split}':
      continue
    if not images.is_image_name(name):
      others.append(member.name)
      continue
    if name not in waiting:
      known = 'is there twice' if name in labels else 'has no label'
      errors.append(f'{member.name} ({known})')
      continue
    waiting.remove(name)
    try:
      yield name, {'image': _read(member), 'label': labels[name]}
    except images.UnreadableImage as error:
      errors.append(error)
  errors += [f'{name} (labelled but not there)' for name in sorted(waiting)]
  images.warn_of_others(others, tree)
  images.refuse_unreadable(errors, len(labels), f'{tree}, {split}')


def _read(member: archives.Member) -> bytes | np.ndarray:
  """Returns the picture; a PNG's own bytes where they can be used."""
  data = member.read()
  image = images.decode(data, member.name)
  if image.size != (digits.SIZE, digits.SIZE):
    width, height = image.size
    raise images.UnreadableImage(
      f'{member.name} (is {width}×{height}, not 32×32)'
    )
  if (image.format, image.mode) == ('PNG', 'RGB'):
    return data
  return np.asarray(images.to_rgb(image))


def read_labels(tree: pathlib.Path, split: str) -> dict[str, int]:
  """Returns the labels by file name."""
  file = f'mnist_m_{split}_labels.txt'
  for member in archives.iter_members(tree, ENTRIES):
    if member.parts[-1] == file:
      return _parse_labels(member.read(), f'{tree}: {file}')
  raise UserError(f'{tree}: there is no {file} inside.')


def _parse_labels(content: bytes, place: str) -> dict[str, int]:
  labels = {}
  lines = content.decode('utf-8', 'replace').splitlines()
  for number, line in enumerate(lines, 1):
    match = _LINE.fullmatch(line.strip())
    if match is None or match[1] in labels:
      raise UserError(
        f'{place}, line {number}: {line[:80]!r} is not `name.png label` with '
        'a unique name.'
      )
    labels[match[1]] = int(match[2])
  digits.check_labels(np.array([*labels.values()]), 0, 9, place)
  return labels
