"""Every operation equals Pillow's in every pixel."""

import functools

import numpy as np
import pillow_views
import pytest
import sklearn.datasets
import tensorflow as tf
from PIL import Image, ImageOps

from moda_jax.data import magnitudes, pixel_operations, randaugment

SIZES = [(32, 32), (28, 28), (37, 53), (256, 256), (1, 1), (2, 3)]


@functools.cache
def kinds_of_images(height, width):
  photograph = sklearn.datasets.load_sample_image('china.jpg')[100:356, 200:456]
  photograph = Image.fromarray(photograph).resize((width, height))
  rng = np.random.default_rng(height * width)
  shape = (height, width, 3)
  return {
    'random': rng.integers(0, 256, shape, np.uint8),
    'constant': np.full(shape, rng.integers(0, 256, 3), np.uint8),
    'two-valued': rng.choice(np.array([33, 201], np.uint8), shape),
    'photograph': np.asarray(photograph),
  }


@functools.cache
def cases(height, width):
  """Returns every kind of image at every setting, [4 * 62, H, W, 3].

  Of large images the kinds take turns over the settings, [62, H, W, 3].
  """
  kinds = list(kinds_of_images(height, width).values())
  if height == 256:
    return np.stack((kinds * 16)[: len(pillow_views.SETTINGS)])
  return np.repeat(kinds, len(pillow_views.SETTINGS), axis=0)


def values_of(name, count):
  values = [pillow_views.value(name, *s) for s in pillow_views.SETTINGS]
  return np.resize(values, count)


def expected(images, name, values):
  return np.stack(
    [
      pillow_views.operation(Image.fromarray(image), name, value)
      for image, value in zip(images, values, strict=True)
    ]
  )


@functools.cache
def expected_of_all(height, width):
  images = cases(height, width)
  return {
    name: expected(images, name, values_of(name, len(images)))
    for name in randaugment.OPERATIONS
  }


def apply_all(images, values):
  return {
    name: randaugment.apply_operation(images, name, value)
    for name, value in values.items()
  }


def inputs(size):
  images = cases(*size)
  names = randaugment.OPERATIONS
  return images, {name: values_of(name, len(images)) for name in names}


@pytest.mark.parametrize('size', SIZES, ids=str)
def test_all_operations_at_all_magnitudes(size):
  got = apply_all(*inputs(size))
  for name, want in expected_of_all(*size).items():
    np.testing.assert_array_equal(got[name], want, name)


def test_all_operations_in_a_pipeline():
  datasets = [tf.data.Dataset.from_tensors(inputs(size)) for size in SIZES]
  dataset = functools.reduce(tf.data.Dataset.concatenate, datasets)
  results = dataset.map(apply_all).as_numpy_iterator()
  for size, got in zip(SIZES, results, strict=True):
    for name, want in expected_of_all(*size).items():
      np.testing.assert_array_equal(got[name], want, f'{name} at {size}')


def test_values_follow_the_paper():
  for name in randaugment.OPERATIONS:
    for magnitude, sign in pillow_views.SETTINGS:
      want = pillow_views.value(name, magnitude, sign)
      assert magnitudes.operation_value(name, magnitude, sign) == want
    levels, signs = tf.unstack(pillow_views.SETTINGS, axis=1)
    of_tensors = magnitudes.operation_value(name, levels, signs)
    assert of_tensors.dtype == tf.float64
    np.testing.assert_array_equal(of_tensors, values_of(name, 62))


@pytest.mark.parametrize('name', sorted(pillow_views.VALUED))
def test_magnitude_0_is_the_identity(name):
  images = cases(32, 32)
  value = magnitudes.operation_value(name, 0, 1)
  changed = randaugment.apply_operation(images, name, value)
  np.testing.assert_array_equal(changed, images)


@pytest.mark.parametrize('size', [(32, 32), (37, 53)], ids=str)
def test_rotation_by_any_angle(size):
  angles = [0, 90, 180, 270, 360, -90, -180, 45, 60, 400, 1e-14, -1e-14]
  angles += list(np.random.default_rng(0).uniform(-360, 360, 236))
  images = cases(*size)
  rotated = randaugment.apply_operation(images, 'Rotate', angles)
  np.testing.assert_array_equal(rotated, expected(images, 'Rotate', angles))


@pytest.mark.parametrize('name', ['TranslateX', 'TranslateY'])
def test_shifts_at_the_edge_of_a_pixel(name):
  """Shifts where the rounding of Pillow's running sum decides the pixel."""
  images = cases(37, 53)
  side = images.shape[2 if name == 'TranslateX' else 1]
  shifts = []
  for half in np.arange(-15.5, 15.5):
    shift = half / side
    for ulps in (-7, -5, -3, -1, 0, 1, 2, 5):
      shifts.append(shift + ulps * np.spacing(shift))
  shifted = randaugment.apply_operation(images, name, shifts[:248])
  want = expected(images, name, shifts[:248])
  np.testing.assert_array_equal(shifted, want)


def test_blend_of_any_two_values_at_any_magnitude():
  rows, columns = np.mgrid[:256, :256].astype(np.uint8)

  @tf.function(jit_compile=True)
  def blend(factor):
    return pixel_operations.blend(
      tf.constant(rows, tf.float32), tf.constant(columns, tf.float32), factor
    )

  one, other = Image.fromarray(rows), Image.fromarray(columns)
  for setting in pillow_views.SETTINGS:
    factor = pillow_views.value('Color', *setting)
    halves = pixel_operations.halves(tf.constant(factor, tf.float32))
    want = np.asarray(Image.blend(one, other, factor))
    np.testing.assert_array_equal(blend(halves), want)


def test_autocontrast_between_any_two_levels():
  low, high = np.triu_indices(256)
  # Every third of 32,896 pairs, three to an image.
  pairs = np.stack([low, high], axis=-1)[::3][:10_965]
  pairs = pairs.reshape(-1, 1, 1, 3, 2)
  levels = np.arange(256).reshape(1, 16, 16, 1)
  images = np.clip(levels, pairs[..., 0], pairs[..., 1]).astype(np.uint8)
  stretched = randaugment.apply_operation(images, 'AutoContrast', 0.0)
  for image, got in zip(images, stretched.numpy(), strict=True):
    want = np.asarray(ImageOps.autocontrast(Image.fromarray(image)))
    assert np.array_equal(got, want)


def test_equalize_where_its_step_is_small():
  """Steps of 0, 1 and 2, and levels past 255 that Pillow clips."""
  rng = np.random.default_rng(0)
  tops = rng.integers(1, 257, 300)
  images = np.stack([rng.integers(0, top, (16, 32, 3)) for top in tops])
  images[::3, 2:] = 255
  images = images.astype(np.uint8)
  got = randaugment.apply_operation(images, 'Equalize', 0.0)
  np.testing.assert_array_equal(got, expected(images, 'Equalize', tops))


@pytest.mark.parametrize('size', [(32, 32), (37, 53), (1, 1), (2, 3)], ids=str)
def test_cutout(size):
  height, width = size
  images = cases(height, width)
  rng = np.random.default_rng(0)
  x, y = rng.uniform(0, width, 248), rng.uniform(0, height, 248)
  x[:4], y[:4] = [0, 0, width - 1e-9, width / 2], [0, height - 1e-9, 0, 0]
  got = randaugment.cutout(images, tf.constant(x), tf.constant(y))
  want = [
    pillow_views.cutout(Image.fromarray(image), *center)
    for image, *center in zip(images, x, y, strict=True)
  ]
  np.testing.assert_array_equal(got, np.stack(want))
