import re

import pytest
import tiny
from matplotlib.figure import Figure
from PIL import Image

from moda_jax import report
from moda_jax.report import plots
from moda_jax.training import loop as train
from moda_jax.training.run_folder import read_metrics


def make_page(tmp_path, domains=None, **values):
  config = tiny.make_run_config(**values)
  domains = domains or tiny.make_domains()
  outcome = train.train(config, tmp_path, domains, devices=1)
  page = report.write_run_page(outcome, tmp_path)
  return outcome, page, page.read_text()


def test_every_picture_of_the_page_is_there(tmp_path):
  outcome, page, text = make_page(tmp_path)
  assert page == tmp_path / 'report' / 'index.html'
  pictures = re.findall(r'src="([^"]+)"', text)
  assert set(pictures) == {
    'accuracy.png',
    'shares.png',
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
  assert 'shares.png' not in text
  assert 'views.png' not in text


def test_single_source_methods_tell_each_accuracy(tmp_path):
  _, _, text = make_page(tmp_path, method='dann_ss')
  for source in 'abc':
    assert f'dann_ss from {source}' in text
  assert 'best of the single sources, chosen with target labels' in text


def test_single_source_methods_need_no_labels_of_the_target(tmp_path):
  domains = tiny.make_domains()
  target = domains.target._replace(labels=None)
  domains = domains._replace(target=target, test=target)
  _, _, text = make_page(tmp_path, domains, method='dann_ss')
  assert 'accuracy.png' not in text
  assert 'losses.png' in text


@pytest.mark.parametrize(
  ('method', 'named'),
  [
    ('moe', 'class/a'),
    ('mdan', 'discriminator/a'),
    ('dann_ss', 'discriminator/target/a'),
    ('fm', 'share above τ'),
  ],
)
def test_every_term_is_in_the_picture_of_the_losses(
  tmp_path, monkeypatch, method, named
):
  figures = []
  monkeypatch.setattr(
    Figure, 'savefig', lambda self, path: figures.append(self)
  )
  config = tiny.make_run_config(method=method)
  train.train(config, tmp_path, tiny.make_domains(), devices=1)
  plots.plot_losses(read_metrics(tmp_path), tmp_path / 'losses.png')
  (axes,) = figures[0].axes
  lines = {line.get_label(): line for line in axes.lines}
  assert named in lines
  assert 'gradient_norm' not in lines
  assert all(len(line.get_xdata()) == 3 for line in lines.values())


def test_supervised_says_that_it_used_target_labels(tmp_path):
  _, _, text = make_page(tmp_path, method='supervised')
  assert 'trained on target labels' in text


def test_names_are_escaped(tmp_path):
  _, _, text = make_page(tmp_path, experiment='<b>mine</b>')
  assert '<b>' not in text
