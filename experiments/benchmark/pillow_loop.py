"""Both views of an image by Pillow, one image at a time, as people write them.

Needs Pillow and NumPy alone: PyTorch's twin uses it too.
"""

import random

import numpy as np
from PIL import Image, ImageDraw, ImageEnhance, ImageOps

_AFFINE = Image.Transform.AFFINE
_GREY = (125, 123, 114)
_ENHANCERS = {
  'Color': ImageEnhance.Color,
  'Contrast': ImageEnhance.Contrast,
  'Brightness': ImageEnhance.Brightness,
  'Sharpness': ImageEnhance.Sharpness,
}
_PLAIN = {
  'AutoContrast': ImageOps.autocontrast,
  'Equalize': ImageOps.equalize,
  'Invert': ImageOps.invert,
  'FlipX': ImageOps.mirror,
}
OPERATIONS = (
  *_PLAIN,
  *_ENHANCERS,
  'Rotate',
  'Posterize',
  'Solarize',
  'ShearX',
  'ShearY',
  'TranslateX',
  'TranslateY',
)


def weak_view(
  image: Image.Image,
  rng: random.Random,
  rotation: float = 5.0,
  translation: float = 0.125,
  flip: bool = False,
) -> Image.Image:
  """Returns the image rotated and shifted a little."""
  if flip and rng.random() < 0.5:
    image = ImageOps.mirror(image)
  shift = [
    round(rng.uniform(-1, 1) * translation * side) for side in image.size
  ]
  return image.rotate(rng.uniform(-rotation, rotation), translate=shift)


def strong_view(
  image: Image.Image,
  rng: random.Random,
  magnitude: int,
  exclude: tuple[str, ...] = (),
) -> Image.Image:
  """Returns the image with a cutout, then two random operations."""
  image = _cut_out(image, rng)
  names = [name for name in OPERATIONS if name not in exclude]
  for name in rng.choices(names, k=2):
    image = operate(image, name, magnitude / 30, rng.choice((1, -1)))
  return image


def strong_views(
  images: np.ndarray, rng: random.Random, exclude: tuple[str, ...] = ()
) -> np.ndarray:
  """Returns the strong views of `[N, H, W, 3]` at one magnitude of 3 to 10."""
  magnitude = rng.randint(3, 10)
  views = np.empty_like(images)
  for place, pixels in enumerate(images):
    image = Image.fromarray(pixels)
    views[place] = np.asarray(strong_view(image, rng, magnitude, exclude))
  return views


def _cut_out(image: Image.Image, rng: random.Random) -> Image.Image:
  side = int(0.3 * image.height)
  left = int(max(0, rng.uniform(0, image.width) - side / 2))
  top = int(max(0, rng.uniform(0, image.height) - side / 2))
  right, bottom = min(image.width, left + side), min(image.height, top + side)
  image = image.copy()
  ImageDraw.Draw(image).rectangle((left, top, right, bottom), _GREY)
  return image


def operate(
  image: Image.Image, name: str, part: float, sign: int
) -> Image.Image:
  """Returns the image after one operation at `part` of its range."""
  if name in _PLAIN:
    return _PLAIN[name](image)
  if name in _ENHANCERS:
    return _ENHANCERS[name](image).enhance(1 + sign * part * 0.9)
  if name == 'Rotate':
    return image.rotate(sign * part * 30)
  if name == 'Posterize':
    return ImageOps.posterize(image, int(8 - part * 4))
  if name == 'Solarize':
    return ImageOps.solarize(image, 256 - part * 256)
  amount = sign * part * (0.3 if name.startswith('Shear') else 0.45)
  matrix = {
    'ShearX': (1, amount, 0, 0, 1, 0),
    'ShearY': (1, 0, 0, amount, 1, 0),
    'TranslateX': (1, 0, amount * image.width, 0, 1, 0),
    'TranslateY': (1, 0, 0, 0, 1, amount * image.height),
  }[name]
  return image.transform(image.size, _AFFINE, matrix)
