"""Numbers of one to three digits in printed fonts; the centre digit counts."""

import functools
import pathlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

Colour = tuple[int, int, int]

# A fixed list, so that another version of matplotlib gives the same numbers.
# Its symbol fonts are left out (some have other signs in the digits' places),
# and so is cmmi10, whose digits are oldstyle.
FONTS = (
  'DejaVuSans',
  'DejaVuSans-Bold',
  'DejaVuSans-BoldOblique',
  'DejaVuSans-Oblique',
  'DejaVuSansMono',
  'DejaVuSansMono-Bold',
  'DejaVuSansMono-BoldOblique',
  'DejaVuSansMono-Oblique',
  'DejaVuSerif',
  'DejaVuSerif-Bold',
  'DejaVuSerif-BoldItalic',
  'DejaVuSerif-Italic',
  'STIXGeneral',
  'STIXGeneralBol',
  'STIXGeneralBolIta',
  'STIXGeneralItalic',
  'cmb10',
  'cmr10',
  'cmss10',
  'cmti10',
  'cmtt10',
)

_SCALE = 4  # drawn this many times larger, then averaged down
_MIN_CONTRAST = 60  # grey levels between digit and background


class Number(NamedTuple):
  """How one number is drawn; lengths in pixels of the finished picture."""

  left: str
  digit: int  # the label, in the centre
  right: str
  font: str
  height: float  # of the font's em square
  shift: tuple[float, float]  # of the centre digit
  angle: float  # degrees
  background: Colour
  fill: Colour
  outline: Colour
  outline_width: float  # 0 for none
  blur: float


def choose_number(
  rng: np.random.RandomState, digit: int, fonts: Sequence[str] = FONTS
) -> Number:
  """Draws at random how to print a number with this digit in the centre.

  Args:
    rng: a RandomState, whose stream NumPy promises for all versions.
    digit: the label.
    fonts: names out of `FONTS`.
  """
  neighbours = [str(rng.randint(10)) * rng.randint(2) for _ in range(2)]
  background, fill = _contrasting_colours(rng)
  return Number(
    left=neighbours[0],
    digit=digit,
    right=neighbours[1],
    font=fonts[rng.randint(len(fonts))],
    height=rng.uniform(22, 34),
    shift=(rng.uniform(-3, 3), rng.uniform(-3, 3)),
    angle=rng.uniform(-20, 20),
    background=background,
    fill=fill,
    outline=_colour(rng),
    outline_width=rng.randint(2) * rng.uniform(0.5, 1.5),
    blur=rng.uniform(0, 1),
  )


def _colour(rng: np.random.RandomState) -> Colour:
  red, green, blue = (int(level) for level in rng.randint(256, size=3))
  return red, green, blue


def _contrasting_colours(rng: np.random.RandomState) -> tuple[Colour, Colour]:
  """Draws two colours until they differ in lightness."""
  while True:
    first, second = _colour(rng), _colour(rng)
    weights = (0.299, 0.587, 0.114)
    if abs(np.dot(weights, first) - np.dot(weights, second)) >= _MIN_CONTRAST:
      return first, second


@functools.lru_cache(maxsize=512)
def load_font(name: str, height: int) -> ImageFont.FreeTypeFont:
  """Loads one of the fonts that matplotlib carries."""
  import matplotlib  # takes a while to import

  file = pathlib.Path(matplotlib.get_data_path(), 'fonts', 'ttf', f'{name}.ttf')
  return ImageFont.truetype(
    file,
    height,
    layout_engine=ImageFont.Layout.BASIC,  # the other may not be installed
  )


def print_number(number: Number, size: int = 32) -> np.ndarray:
  """Draws a number as uint8 [size, size, 3]."""
  canvas = size * _SCALE
  font = load_font(number.font, round(number.height * _SCALE))
  picture = Image.new('RGB', (canvas, canvas), number.background)
  centre_x, centre_y = (canvas / 2 + _SCALE * shift for shift in number.shift)
  _, top, _, bottom = font.getbbox(str(number.digit), anchor='ls')
  ImageDraw.Draw(picture).text(
    (
      centre_x
      - font.getlength(number.left)
      - font.getlength(str(number.digit)) / 2,
      centre_y - (top + bottom) / 2,
    ),
    f'{number.left}{number.digit}{number.right}',
    font=font,
    anchor='ls',
    fill=number.fill,
    stroke_width=round(number.outline_width * _SCALE),
    stroke_fill=number.outline,
  )
  picture = picture.rotate(
    number.angle,
    Image.Resampling.BILINEAR,
    center=(centre_x, centre_y),
    fillcolor=number.background,
  )
  picture = picture.reduce(_SCALE).filter(ImageFilter.GaussianBlur(number.blur))
  return np.asarray(picture)
