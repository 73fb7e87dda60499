"""Pictures of unknown origin, decoded with limits."""

import contextlib
import io
import math
import os
import pathlib
import re
import warnings
from collections.abc import Sequence

import numpy as np
from absl import logging
from PIL import Image, ImageOps, UnidentifiedImageError

from moda_jax.errors import UserError

MAX_PIXELS = 50_000_000
SUFFIXES = ('.jpg', '.jpeg', '.png', '.bmp', '.webp', '.tif', '.tiff')

_FORMATS = ('JPEG', 'PNG', 'BMP', 'WEBP', 'TIFF')
# Photographs of telephones, which Pillow does not read by itself.
_REFUSED_SUFFIXES = ('.heic', '.heif', '.avif')
_REFUSED_BRANDS = (b'heic', b'heix', b'hevc', b'mif1', b'msf1', b'avif')
_WITH_ALPHA = ('RGBA', 'LA', 'PA', 'P')
_OF_16_BITS = ('I;16', 'I;16B', 'I')
_MODES = ('1', 'L', 'RGB', 'CMYK', 'YCbCr', *_WITH_ALPHA, *_OF_16_BITS)
_NAMES_SHOWN = 10
_SPARE = 1.5
# As `warnings.filterwarnings('ignore', module='PIL')` writes it down.
_SILENT = ('ignore', None, Warning, re.compile('PIL'), 0)


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


def is_photograph_name(name: str) -> bool:
  """Returns whether it is a picture's name, be it of a kind that is not read.

  `decode` refuses those by name, so that none is left out unnoticed.
  """
  suffixes = SUFFIXES + _REFUSED_SUFFIXES
  return name.lower().endswith(suffixes) and not is_hidden(name)


def decode(data: bytes, name: str, size: int = 0) -> Image.Image:
  """Decodes one picture completely; `format` and `mode` are the file's own.

  Args:
    data: the file.
    name: what errors call it.
    size: what both sides will be resized to: a JPEG that is much larger is
      not decoded in full, and comes in this size; 0 decodes all of it.
  """
  try:
    _ignore_warnings()
    image: Image.Image = Image.open(io.BytesIO(data), formats=_FORMATS)
    width, height = image.size
    if width * height <= MAX_PIXELS:
      box = _skip_pixels(image, size) if size else None
      image.load()
      if box is not None:
        image = image.resize((size, size), Image.Resampling.BILINEAR, box)
  except Exception as error:  # Pillow raises nearly anything on hostile bytes
    reason = _find_reason(data, error)
    raise UnreadableImage(f'{name} ({reason})') from error
  if width * height > MAX_PIXELS:
    raise UnreadableImage(f'{name} ({width}×{height} is over {MAX_PIXELS:,})')
  if image.mode not in _MODES:
    raise UnreadableImage(f'{name} (mode {image.mode} is not supported)')
  return image


def _ignore_warnings() -> None:
  """Silences Pillow on odd metadata, which is not used, from now on.

  `warnings.catch_warnings` is not for threads: they would restore the filters
  in another order than they changed them.
  """
  if list(warnings.filters[:1]) != [_SILENT]:
    warnings.filterwarnings('ignore', module='PIL')


def _skip_pixels(
  image: Image.Image, size: int
) -> tuple[float, float, float, float] | None:
  """Has a large JPEG decoded at a half, a quarter or an eighth of its size.

  Never below `_SPARE` times the size wanted, so that resizing smooths what is
  left: grey levels differ by about half of one on average.

  Returns:
    What the picture takes up of what is decoded, whose sides are rounded up;
    None where it is decoded in full.
  """
  before, least = image.size, math.ceil(_SPARE * size)
  drafted = image.draft(None, (least, least))  # other formats do nothing
  return None if drafted is None or image.size == before else drafted[1]


def _find_reason(data: bytes, error: Exception) -> str:
  if not data:
    return 'the file is empty'
  if data[4:8] == b'ftyp' and data[8:12] in _REFUSED_BRANDS:
    return 'HEIC and AVIF are not read; convert it to JPEG or PNG'
  if isinstance(error, UnidentifiedImageError):  # says where in memory it is
    return f'not a picture of the kinds read: {", ".join(_FORMATS)}'
  return str(error)


def read_file(path: pathlib.Path, name: str | os.PathLike = '') -> bytes:
  """Returns the bytes of a picture's file; errors call it `name`."""
  try:
    return path.read_bytes()
  except OSError as error:
    reason = error.strerror or str(error)
    if path.is_symlink() and not path.exists():
      reason = f'a link to {os.readlink(path)}, which is not there'
    raise UnreadableImage(f'{name or path} ({reason})') from error


def shorter_side(file: pathlib.Path | io.BytesIO) -> int:
  """Returns it from the head of a file; 0 where that cannot be read."""
  try:
    _ignore_warnings()
    with Image.open(file, formats=_FORMATS) as image:
      return min(image.size)
  except Exception:  # as in `decode`, which names the file later
    return 0


def turn_upright(image: Image.Image) -> Image.Image:
  """Turns a photograph as its EXIF orientation says and viewers show it."""
  _ignore_warnings()
  with contextlib.suppress(Exception):
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
  return image if image.mode == 'RGB' else image.convert('RGB')


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
  errors: Sequence[UserError | str],
  total: int,
  place: object,
  advice: str = '',
) -> None:
  """Raises one error that counts and names what could not be read, if any."""
  if not errors:
    return
  shown = '\n  '.join(str(error) for error in errors[:_NAMES_SHOWN])
  more = len(errors) - _NAMES_SHOWN
  raise UserError(
    f'{len(errors):,} of {total:,} files of {place} cannot be used:\n  {shown}'
    + (f'\n  … and {more:,} more' if more > 0 else '')
    + (f'\n{advice}' if advice else '')
  )
