import math

import made_up_files
import numpy as np
import pytest

from moda_jax.data.domains import Domain
from moda_jax.data.labels import label_distances
from moda_jax.datasets.amazon_reviews import (
  amazon_reviews_dataset_builder as amazon_reviews,
)
from moda_jax.datasets.office31 import office31_dataset_builder as office31
from moda_jax.files import archives, raw_arrays


def make(name, labels, classes=('x', 'y')):
  labels = np.asarray(labels)
  return Domain(name, 'made up', np.zeros((len(labels), 1)), labels, classes)


def test_distances_follow_the_definition():
  """Against the formula written out: the root of the mean divergence."""
  a, b = make('a', [0, 0, 0, 1]), make('b', [0, 1])
  p, q = (0.75, 0.25), (0.5, 0.5)
  middle = [(x + y) / 2 for x, y in zip(p, q, strict=True)]

  def divergence(from_, to):
    return sum(x * math.log(x / y) for x, y in zip(from_, to, strict=True))

  expected = math.sqrt((divergence(p, middle) + divergence(q, middle)) / 2)
  assert label_distances([a, b]) == {('a', 'b'): pytest.approx(expected)}
  apart = label_distances([make('a', [0]), make('b', [1])])
  assert apart == {('a', 'b'): pytest.approx(math.sqrt(math.log(2)))}
  assert label_distances([a, a._replace(name='c')])['a', 'c'] == 0


def round_to(value, printed):
  """Rounds `value` to as many digits as the paper prints."""
  digits = len(printed.split('e')[0].replace('.', '').lstrip('0'))
  return float(f'{value:.{digits}g}')


def assert_as_printed(domains, printed):
  distances = label_distances(domains)
  for pair, text in printed.items():
    assert round_to(distances[pair], text) == float(text), pair


def test_office31_has_the_paper_s_distances():
  tree = made_up_files.real('office31', 'office31_256.tar')
  labels = {domain: [] for domain in office31.DOMAINS}
  for member in archives.iter_members(tree, office31.DOMAINS):
    for domain, found in labels.items():
      label = office31.class_folder(member, domain)
      if label is not None:
        found.append(office31.CLASSES.index(label))
  assert {d: len(found) for d, found in labels.items()} == {
    'amazon': 2817,
    'dslr': 498,
    'webcam': 795,
  }
  classes = tuple(office31.CLASSES)
  assert_as_printed(
    [make(domain, found, classes) for domain, found in labels.items()],
    {
      ('amazon', 'dslr'): '0.133',
      ('amazon', 'webcam'): '0.0976',
      ('dslr', 'webcam'): '0.145',
    },
  )


@pytest.mark.slow
def test_reviews_have_the_paper_s_distances():
  arrays = amazon_reviews.read_arrays(
    made_up_files.real('reviews', 'amazon.npz')
  )
  parts = np.split(arrays['yy'] > 0, arrays['offset'][1:-1])
  domains = [
    make(domain, part.astype(int))
    for domain, part in zip(amazon_reviews.DOMAINS, parts, strict=True)
  ]
  printed = {
    ('books', 'dvd'): '1.67e-3',
    ('books', 'electronics'): '1.93e-3',
    ('books', 'kitchen'): '5.09e-3',
    ('dvd', 'electronics'): '2.53e-4',
    ('dvd', 'kitchen'): '3.42e-3',
    ('electronics', 'kitchen'): '3.17e-3',
  }
  assert_as_printed(domains, printed)


def test_digits_come_near_the_paper_s_distance():
  """Our SVHN is a random part: 0.1157 where the paper has 0.117."""
  folder = made_up_files.real('mnist')
  (path,) = folder.glob('train-labels*')
  mnist, _ = raw_arrays.read_idx(path)
  file = made_up_files.real('svhn', 'train_32x32.mat')
  svhn = raw_arrays.read_mat(file, ['y'])['y'].ravel() % 10
  classes = tuple('0123456789')
  domains = [make('mnist', mnist, classes), make('svhn', svhn, classes)]
  (distance,) = label_distances(domains).values()
  assert distance == pytest.approx(0.117, abs=0.002)
