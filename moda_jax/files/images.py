"""Pictures of unknown origin, decoded with limits."""

import contextlib
import io
import pathlib
import warnings
from collections.abc import Sequence

import numpy as np
from absl import logging
from PIL import Image, ImageOps

from moda_jax.errors import UserError

MAX_PIXELS = 50_000_000
SUFFIXES = ('.jpg', '.jpeg', '.png', '.bmp', '.webp')

_FORMATS = ('JPEG', 'PNG', 'BMP', 'WEBP')
_WITH_ALPHA = ('RGBA', 'LA', 'PA', 'P')
_OF_16_BITS = ('I;16', 'I')
_MODES = ('1', 'L', 'RGB', 'CMYK', 'YCbCr', *_WITH_ALPHA, *_OF_16_BITS)
_NAMES_SHOWN = 10


class UnreadableImage(UserError):
  """One file is truncated, not an image, or beyond the limits."""


def is_hidden(name: str) -> bool:
  """Returns whether a path is a by-product: `.DS_Store`, `__MACOSX/…`."""
  return any(
    part.startswith('.') or part == '__MACOSX' for part in name.split('/')
  )


def is_image_name(name: str) -> bool:
  """Returns whether the path is that of a picture, not of a by-product."""
  return name.lower().endswith(SUFFIXES) and not is_hidden(name)


def decode(data: bytes, name: str) -> Image.Image:
  """Decodes one picture completely; `format` and `mode` are the file's own."""
  try:
    with warnings.catch_warnings():
      warnings.simplefilter('ignore')  # of odd metadata, which we do not use
      image = Image.open(io.BytesIO(data), formats=_FORMATS)
      width, height = image.size
      if width * height <= MAX_PIXELS:
        image.load()
  except Exception as error:  # Pillow raises nearly anything on hostile bytes
    raise UnreadableImage(f'{name} ({error})') from error
  if width * height > MAX_PIXELS:
    raise UnreadableImage(f'{name} ({width}×{height} is over {MAX_PIXELS:,})')
  if image.mode not in _MODES:
    raise UnreadableImage(f'{name} (mode {image.mode} is not supported)')
  return image


def shorter_side(path: pathlib.Path) -> int:
  """Returns it from the head of the file; 0 where that cannot be read."""
  try:
    with warnings.catch_warnings(), Image.open(path, formats=_FORMATS) as image:
      warnings.simplefilter('ignore')
      return min(image.size)
  except Exception:  # as in `decode`, which names the file later
    return 0


def turn_upright(image: Image.Image) -> Image.Image:
  """Turns a photograph as its EXIF orientation says and viewers show it."""
  with warnings.catch_warnings(), contextlib.suppress(Exception):
    warnings.simplefilter('ignore')
    # Raises nearly anything on broken metadata, which then says nothing.
    ImageOps.exif_transpose(image, in_place=True)
  return image


def to_rgb(image: Image.Image) -> Image.Image:
  """Converts any mode that `decode` lets through; transparency is dropped."""
  if image.mode in _OF_16_BITS:
    # The upper byte, which Pillow takes of 16 bits per channel in colour.
    upper = np.clip(np.asarray(image) // 256, 0, 255)
    image = Image.fromarray(upper.astype(np.uint8))
  if image.mode in _WITH_ALPHA:
    image = image.convert('RGBA')
  return image.convert('RGB')


def warn_of_others(names: Sequence[str], place: object) -> None:
  """Warns of files among the pictures that are not pictures themselves."""
  names = [name for name in names if not is_hidden(name)]
  if names:
    shown = ', '.join(names[:_NAMES_SHOWN])
    more = ', …' if len(names) > _NAMES_SHOWN else ''
    logging.warning(
      '%s: %d files are not pictures of the kinds read (%s) and are left '
      'out: %s%s',
      place,
      len(names),
      ', '.join(SUFFIXES),
      shown,
      more,
    )


def refuse_unreadable(
  errors: Sequence[UserError | str], total: int, place: object
) -> None:
  """Raises one error that counts and names what could not be read, if any."""
  if not errors:
    return
  shown = '\n  '.join(str(error) for error in errors[:_NAMES_SHOWN])
  more = len(errors) - _NAMES_SHOWN
  raise UserError(
    f'{len(errors):,} of {total:,} files of {place} cannot be used:\n  {shown}'
    + (f'\n  … and {more:,} more' if more > 0 else '')
  )
