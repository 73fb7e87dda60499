"""The figures of the data themselves: label shift and views."""

import itertools

import pytest
import tiny
from drawn import check_files, read_csv

from experiments import label_shift, views
from experiments.figures import published
from experiments.runs.scales import find_setting
from moda_jax.data.domains import Domain

TINY = find_setting('digits', 'tiny')


def list_rest(domain):
  return domain.origin, domain.inputs, domain.labels, domain.classes


def make_domains():
  return [Domain(d.name, *list_rest(d)) for d in tiny.make_domains().sources]


def test_label_shift_has_shares_and_distances(tmp_path):
  files = label_shift.draw(TINY, make_domains(), tmp_path / 'drawn')
  check_files(files)
  rows = read_csv(files[-1])
  shares = [float(r['value']) for r in rows if r['kind'] == 'share']
  assert sum(shares) == pytest.approx(3)
  assert sum(r['kind'] == 'distance' for r in rows) == 3


def test_a_distance_is_shown_once_with_three_digits_in_its_cell():
  names = ('books', 'dvd', 'electronics', 'kitchen')
  domain = make_domains()[0]
  domains = [Domain(name, *list_rest(domain)) for name in names]
  # From 2.53e-4, which four decimals would round to one digit, to 0.1.
  distances = {
    pair: 0.1 if 'kitchen' in pair else 2.532e-4
    for pair in itertools.combinations(names, 2)
  }
  setting = find_setting('reviews', 'small')
  figure = label_shift.make_figure(setting, domains, distances)
  figure.draw_without_rendering()
  *_, axes = figure.axes
  texts = [text.get_text() for text in axes.texts]
  assert texts[0] == '0.000253\n(0.00167)'
  assert texts[2] == '0.100\n(0.00509)'
  assert len(texts) == 6
  cell = axes.get_window_extent().width / 3
  assert max(text.get_window_extent().width for text in axes.texts) < cell
  shown = [label.get_text() for label in figure.axes[0].get_yticklabels()]
  assert shown == list(domain.classes)


def test_the_paper_s_distances_are_symmetric():
  assert published.published_distance('svhn', 'mnist') == 0.117
  assert published.published_distance('mnist', 'svhn') == 0.117
  assert published.published_distance('mnist', 'books') is None


def test_views_show_different_classes(tmp_path):
  domains = make_domains()
  chosen = views.choose(domains[0], 3, 0)
  assert len(set(domains[0].labels[chosen])) == 3
  assert len(set(views.choose(domains[0], 9, 0))) == 9
  files = views.draw(TINY, domains, tmp_path / 'drawn', count=2)
  check_files(files)
  assert len(read_csv(files[-1])) == 6
