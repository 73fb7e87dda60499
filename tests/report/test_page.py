import re

import tiny
from PIL import Image

from moda_jax import report, train


def make_page(tmp_path, **values):
  config = tiny.make_run_config(**values)
  outcome = train.train(config, tmp_path, tiny.make_domains(), devices=1)
  page = report.write_run_page(outcome, tmp_path)
  return outcome, page, page.read_text()


def test_every_picture_of_the_page_is_there(tmp_path):
  outcome, page, text = make_page(tmp_path)
  assert page == tmp_path / 'report' / 'index.html'
  pictures = re.findall(r'src="([^"]+)"', text)
  assert set(pictures) == {
    'accuracy.png',
    'alpha.png',
    'losses.png',
    'views.png',
  }
  for name in pictures:
    with Image.open(page.parent / name) as picture:
      picture.verify()
  assert f'{100 * outcome.accuracy:.2f} %' in text
  assert 'chosen with target labels' in text


def test_a_method_without_weights_or_views_has_a_page_too(tmp_path):
  _, _, text = make_page(tmp_path, method='source_only')
  assert 'alpha.png' not in text
  assert 'views.png' not in text


def test_single_source_methods_tell_each_accuracy(tmp_path):
  _, _, text = make_page(tmp_path, method='dann_ss')
  for source in 'abc':
    assert f'dann_ss from {source}' in text
  assert 'best of the single sources, chosen with target labels' in text


def test_supervised_says_that_it_used_target_labels(tmp_path):
  _, _, text = make_page(tmp_path, method='supervised')
  assert 'trained on target labels' in text


def test_names_are_escaped(tmp_path):
  _, _, text = make_page(tmp_path, experiment='<b>mine</b>')
  assert '<b>' not in text
