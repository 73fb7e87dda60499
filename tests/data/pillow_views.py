"""The views by Pillow, one image at a time: what the batched must equal."""

import itertools

import numpy as np
from PIL import Image, ImageDraw, ImageEnhance, ImageOps

AFFINE = Image.Transform.AFFINE
ON_OR_OFF = {
  'AutoContrast': ImageOps.autocontrast,
  'Equalize': ImageOps.equalize,
  'Invert': ImageOps.invert,
  'FlipX': ImageOps.mirror,
}
VALUED = {
  'Rotate': lambda image, v: image.rotate(v),
  'Posterize': lambda image, v: ImageOps.posterize(image, int(v)),
  'Solarize': ImageOps.solarize,
  'Color': lambda image, v: ImageEnhance.Color(image).enhance(v),
  'Contrast': lambda image, v: ImageEnhance.Contrast(image).enhance(v),
  'Brightness': lambda image, v: ImageEnhance.Brightness(image).enhance(v),
  'Sharpness': lambda image, v: ImageEnhance.Sharpness(image).enhance(v),
  'ShearX': lambda image, v: image.transform(
    image.size, AFFINE, (1, v, 0, 0, 1, 0)
  ),
  'ShearY': lambda image, v: image.transform(
    image.size, AFFINE, (1, 0, 0, v, 1, 0)
  ),
  'TranslateX': lambda image, v: image.transform(
    image.size, AFFINE, (1, 0, v * image.width, 0, 1, 0)
  ),
  'TranslateY': lambda image, v: image.transform(
    image.size, AFFINE, (1, 0, 0, 0, 1, v * image.height)
  ),
}
# All magnitudes with both signs.
SETTINGS = list(itertools.product(range(31), (1, -1)))


def value(name, magnitude, sign):
  """Returns the paper's value: 0 is the identity, 30 the end of the range."""
  part = magnitude / 30
  if name in ON_OR_OFF:
    return 0.0
  if name == 'Posterize':
    return 8 - part * 4
  if name == 'Solarize':
    return 256 - part * 256
  if name in ('Color', 'Contrast', 'Brightness', 'Sharpness'):
    return 1.0 + sign * (part * 0.9)
  reach = {'Rotate': 30.0, 'ShearX': 0.3, 'ShearY': 0.3}.get(name, 0.45)
  return sign * (part * reach)


def operation(image, name, value):
  if name in ON_OR_OFF:
    return ON_OR_OFF[name](image)
  return VALUED[name](image, value)


def cutout(image, center_x, center_y):
  side = int(0.3 * image.height)
  left = int(max(0, center_x - side / 2))
  top = int(max(0, center_y - side / 2))
  right = min(image.width, left + side)
  bottom = min(image.height, top + side)
  image = image.copy()
  draw = ImageDraw.Draw(image)
  draw.rectangle((left, top, right, bottom), (125, 123, 114))
  return image


def strong(pixels, names, signs, magnitude, center, cutout_at):
  """Returns RandAugment of one image [H, W, 3] with given draws."""
  image = Image.fromarray(pixels)
  if cutout_at == 'first':
    image = cutout(image, *center)
  for name, sign in zip(names, signs, strict=True):
    image = operation(image, name, value(name, magnitude, sign))
  if cutout_at == 'last':
    image = cutout(image, *center)
  return np.asarray(image)


def weak(pixels, angle, shift, flip):
  """Returns the weak view of one image [H, W, 3] with given draws."""
  image = Image.fromarray(pixels)
  if flip:
    image = ImageOps.mirror(image)
  return np.asarray(image.rotate(angle, translate=shift))
