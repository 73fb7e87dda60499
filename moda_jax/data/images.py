"""Images as arrays, brought to the network's size and colours."""

import numpy as np
from PIL import Image

from moda_jax.errors import UserError

MNIST_SIZE = (28, 28)


def resize(image: np.ndarray, size: int) -> np.ndarray:
  """Resizes `[H, W, 3]` bytes to `[size, size, 3]`, smoothly."""
  if image.shape[:2] == (size, size):
    return image
  resized = Image.fromarray(image).resize(
    (size, size), Image.Resampling.BILINEAR
  )
  return np.asarray(resized)


def pad_mnist(images: np.ndarray) -> np.ndarray:
  """Pads `[N, 28, 28, C]` to 32 × 32, as the paper does with MNIST."""
  if images.shape[1:3] == MNIST_SIZE:
    images = np.pad(images, ((0, 0), (2, 2), (2, 2), (0, 0)))
  return images


def to_rgb(images: np.ndarray) -> np.ndarray:
  """Repeats the one channel of grey images `[..., 1]`."""
  return np.repeat(images, 3, axis=-1) if images.shape[-1] == 1 else images


def to_bytes(images: np.ndarray, where: str) -> np.ndarray:
  """Returns images as bytes; refuses what is neither bytes nor 0..1."""
  if images.dtype == np.uint8:
    return images
  if images.dtype.kind != 'f':
    raise UserError(
      f'{where} of type {images.dtype}; uint8, or floats in 0..1, are needed.'
    )
  if not (np.isfinite(images).all() and 0 <= images.min() <= images.max() <= 1):
    raise UserError(f'{where} as floats must lie within 0..1.')
  return np.round(255 * images).astype(np.uint8)
