"""The benchmark's Pillow loop makes the views that the pipeline makes."""

import numpy as np
import pillow_views
import pytest
from PIL import Image

from experiments.benchmark import pillow_loop, settings


@pytest.mark.parametrize('name', pillow_loop.OPERATIONS)
@pytest.mark.parametrize('sign', [1, -1])
def test_the_loop_operates_as_the_tests_reference_does(name, sign):
  rng = np.random.default_rng(0)
  image = Image.fromarray(settings.make_images(32, 1, rng)[0])
  for magnitude in (3, 7, 10):
    value = pillow_views.value(name, magnitude, sign)
    expected = pillow_views.operation(image, name, value)
    found = pillow_loop.operate(image, name, magnitude / 30, sign)
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))
