"""Pictures labelled by a trained model, as a table."""

import csv
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from moda_jax.data.pictures import read_picture
from moda_jax.errors import UserError
from moda_jax.files.atomic import write_whole
from moda_jax.files.images import SUFFIXES, is_photograph_name

HEADER = (
  'path',
  'class',
  'confidence',
  'class_2',
  'confidence_2',
  'class_3',
  'confidence_3',
  'remark',
)
_TOP = 3
_AT_A_TIME = 256
Predict = Callable[[list[np.ndarray]], np.ndarray]


def check_flags(out: pathlib.Path, threshold: float) -> None:
  """Refuses a table that cannot be written, and what is not a probability."""
  if not 0 <= threshold <= 1:
    raise UserError(f'--threshold={threshold} must lie within 0..1.')
  if not out.absolute().parent.is_dir() or out.is_dir():
    raise UserError(f'--out={out} must be a file in a folder that is there.')


def find_pictures(place: pathlib.Path) -> list[pathlib.Path]:
  """Returns all pictures in a folder and those within it, or the one given."""
  if place.is_file():
    return [place]
  if not place.is_dir():
    raise UserError(f'--images={place} is not a folder or a picture.')
  files = [
    path
    for path in sorted(place.rglob('*'))
    if is_photograph_name(str(path.relative_to(place))) and not path.is_dir()
  ]
  if not files:
    raise UserError(
      f'--images={place} holds no pictures: {", ".join(SUFFIXES)} are read.'
    )
  return files


def label_pictures(
  predict: Predict,
  classes: Sequence[str],
  files: Sequence[pathlib.Path],
  out: pathlib.Path,
  threshold: float,
  size: int,
) -> str:
  """Writes the table; returns a line that says what became of the pictures.

  Args:
    predict: from images of any size to probabilities `[N, C]`.
    classes: their names.
    files: the pictures.
    out: the table, with the columns of `HEADER`.
    threshold: below it the remark on a picture is 'unsure'.
    size: what `predict` resizes to, see `files.images.decode`.
  """
  rows = list(_label(predict, classes, files, threshold, size))
  unread = sum(row[1] == '' for row in rows)
  if unread == len(rows):
    raise UserError(f'None of the pictures can be read: {rows[0][-1]}.')
  try:
    with write_whole(out, newline='') as file:
      writer = csv.writer(file)
      writer.writerow(HEADER)
      writer.writerows(rows)
  except OSError as error:
    raise UserError(f'--out={out} cannot be written: {error}.') from error
  unsure = sum(row[-1] == 'unsure' for row in rows)
  return (
    f'{out}: {len(rows)} pictures, {unsure} unsure (below {threshold:g}), '
    f'{unread} unreadable'
  )


def _label(
  predict: Predict,
  classes: Sequence[str],
  files: Sequence[pathlib.Path],
  threshold: float,
  size: int,
) -> Iterator[list[str]]:
  """Yields a row for every picture, in their order."""
  for start in range(0, len(files), _AT_A_TIME):
    some = files[start : start + _AT_A_TIME]
    read, faults = _read(some, size)
    predicted: Any = predict(list(read.values())) if read else ()
    labelled = dict(zip(read, predicted, strict=True))
    for file in some:
      if file in faults:
        yield [str(file), *[''] * (2 * _TOP), faults[file]]
      else:
        yield [str(file), *_describe(labelled[file], classes, threshold)]


def _read(
  files: Sequence[pathlib.Path], size: int
) -> tuple[dict[pathlib.Path, np.ndarray], dict[pathlib.Path, str]]:
  """Returns what could be read, and why the others could not."""
  read, faults = {}, {}
  for file in files:
    try:
      read[file] = read_picture(file, size=size)
    except UserError as error:
      faults[file] = str(error)
  return read, faults


def _describe(
  probabilities: np.ndarray, classes: Sequence[str], threshold: float
) -> list[str]:
  best = (-probabilities).argsort(kind='stable')[:_TOP]
  cells = [c for i in best for c in (classes[i], f'{probabilities[i]:.4f}')]
  cells += [''] * (2 * _TOP - len(cells))  # of two classes there is no third
  return [*cells, 'unsure' if probabilities[best[0]] < threshold else '']
