"""One palette for all pictures, readable whatever one's colour vision."""

import itertools

import numpy as np
import pytest

import moda_jax
from moda_jax.report import palette

# Machado, Oliveira & Fernandes 2009, severity 1, for linear RGB.
DEFICIENCIES = {
  'none': np.eye(3),
  'protanopia': np.array(
    [
      [0.152286, 1.052583, -0.204868],
      [0.114503, 0.786281, 0.099216],
      [-0.003882, -0.048116, 1.051998],
    ]
  ),
  'deuteranopia': np.array(
    [
      [0.367322, 0.860646, -0.227968],
      [0.280085, 0.672501, 0.047413],
      [-0.011820, 0.042940, 0.968881],
    ]
  ),
}


def to_lab(colours, matrix):
  from skimage import color

  rgb = [[int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)] for c in colours]
  rgb = np.array(rgb)
  linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
  seen = np.clip(linear @ matrix.T, 0, 1)
  srgb = np.where(
    seen <= 0.0031308, 12.92 * seen, 1.055 * seen ** (1 / 2.4) - 0.055
  )
  return color.rgb2lab(srgb)


@pytest.mark.parametrize('deficiency', DEFICIENCIES)
def test_colours_stay_apart_whatever_the_colour_vision(deficiency):
  lab = to_lab(palette.COLOURS, DEFICIENCIES[deficiency])
  pairs = itertools.combinations(lab, 2)
  assert min(np.linalg.norm(a - b) for a, b in pairs) > 10


def test_every_method_has_a_style_of_its_own():
  styles = [palette.method_style(name) for name in moda_jax.METHODS]
  assert len(set(styles)) == len(styles)
  assert palette.method_style('unheard of') not in styles


def test_a_domain_has_its_colour_whichever_is_the_target():
  one = palette.domain_styles(['svhn', 'synth', 'mnist', 'mnistm'])
  other = palette.domain_styles(['mnistm', 'mnist', 'synth', 'svhn'])
  assert one == other
  assert len({style.colour for style in one.values()}) == 4


def test_places_beyond_the_colours_differ_too():
  styles = [palette.style(i) for i in range(31)]
  assert len(set(styles)) == 31


def test_runs_of_one_method_share_its_colour():
  styles = palette.run_styles({'a': 'moda', 'b': 'moda', 'c': 'fm'})
  assert styles['a'] == palette.method_style('moda')
  assert styles['b'].colour == styles['a'].colour
  assert styles['b'].dash != styles['a'].dash
  assert styles['c'].colour != styles['a'].colour
