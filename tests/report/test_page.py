"""The page of a run: one file with everything in it."""

import io
import re
import types

import numpy as np
import pytest
import tiny
from pages import drop_labels, make_page, read_pictures
from PIL import Image

from moda_jax import report
from moda_jax.data.domains import Domain
from moda_jax.report import (
  answers,
  curves,
  maps,
  palette,
  pictures,
  sections,
)
from moda_jax.report.examination import Predicted
from moda_jax.training import loop as train
from moda_jax.training.run_folder import read_metrics


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
  workdir = tmp_path_factory.mktemp('page')
  outcome, page, text = make_page(workdir)
  return outcome, page, text


def test_everything_is_in_one_file(trained):
  outcome, page, text = trained
  assert [path.name for path in page.parent.iterdir()] == ['index.html']
  found = read_pictures(text)
  assert len(re.findall('<img', text)) == len(
    re.findall(r'<img[^>]* src="data:image/', text)
  )
  for title in (
    'Target accuracy over time',
    'Source weight α',
    'Confident target samples',
    'Class loss',
    'Discriminator loss',
    'Total loss',
    'Confusion matrix',
    'PCA, by domain',
    'PCA, by class',
    't-SNE, by domain',
    't-SNE, by class',
    'Share of each class',
  ):
    kind, data = found[title]
    assert kind == 'svg+xml'
    assert b'</svg>' in data
  for view in ('weak view', 'strong view'):
    with Image.open(io.BytesIO(found[view][1])) as picture:
      assert picture.size == (32, 32)
  assert not re.findall(r'(?:src|href|url)\s*[=(]\s*["\']?(?!data:|")', text)
  assert f'{100 * outcome.accuracy:.2f} %' in text
  assert 'chosen with target labels' in text
  assert 'source_only' in text  # what a comparison would need
  assert 'http-equiv="refresh"' not in text
  for domain in 'abct':
    assert re.search(f'</span>{domain}</td>', text)


@pytest.mark.slow
def test_a_method_without_weights_or_views_has_a_page_too(tmp_path):
  _, _, text = make_page(tmp_path, method='source_only')
  found = read_pictures(text)
  assert 'Source weight α' not in found
  assert 'weak view' not in found
  assert 'Class loss' in found


@pytest.mark.slow
@pytest.mark.parametrize(
  'labelled', [pytest.param(True, marks=pytest.mark.slow), False]
)
def test_single_source_methods_need_no_labels_of_the_target(tmp_path, labelled):
  domains = tiny.make_domains()
  if not labelled:
    domains = drop_labels(domains)
  _, _, text = make_page(tmp_path, domains, method='dann_ss')
  found = read_pictures(text)
  assert ('Target accuracy over time' in found) == labelled
  assert ('Confusion matrix' in found) == labelled
  assert 'Class loss' in found
  for source in 'abc':
    assert (f'dann_ss from {source}' in text) == labelled
  chosen = 'best of the single sources, chosen with target labels'
  assert (chosen in text) == labelled


@pytest.mark.slow
@pytest.mark.parametrize('method', ['moe', 'supervised'])
def test_other_methods_have_a_page(tmp_path, method):
  _, _, text = make_page(tmp_path, method=method)
  assert ('trained on target labels' in text) == (method == 'supervised')
  assert ('Mixture loss' in read_pictures(text)) == (method == 'moe')


@pytest.mark.slow
def test_rows_of_features_have_a_page(tmp_path):
  domains = tiny.make_sparse_domains()
  config = {'network': 'reviews', 'method': 'fm'}
  _, _, text = make_page(tmp_path, domains, **config)
  found = read_pictures(text)
  assert 'PCA, by class' in found
  assert 'weak view' not in found
  assert 'Most confident mistakes' not in text


@pytest.mark.parametrize(
  ('lines', 'figures'),
  [
    ([{'class/a': 1, 'class/b': 2}], {'Class loss': ['a', 'b']}),
    (
      [{'discriminator': 2, 'discriminator/a': 1, 'discriminator/target': 1}],
      {'Discriminator loss': ['a', 't (target)']},
    ),
    (
      [{'discriminator/target/a': 1, 'discriminator/a': 3}],
      {'Discriminator loss': ['target/a', 'a']},
    ),
    (
      [{'consistency': 1, 'sparsity': 2, 'loss': 3}],
      {'Other terms': ['consistency', 'sparsity'], 'Total loss': ['_child0']},
    ),
    ([{'confident': 1, 'gradient_norm': 1, 'images_per_second': 9}], {}),
  ],
)
def test_every_loss_is_drawn_where_it_belongs(lines, figures):
  lines = [{'step': 1.0} | line for line in lines]
  styles = palette.domain_styles('abt')
  drawn = curves.draw_losses(lines, 't', styles)
  labels = {
    title: [line.get_label() for line in figure.axes[0].lines]
    for title, figure in drawn.items()
  }
  labels = {
    title: ['_child0'] if all(not n or n[0] == '_' for n in names) else names
    for title, names in labels.items()
  }
  assert labels == figures


def test_every_share_of_confident_samples_has_its_figure():
  shares = {'confident': 0.5, 'adamatch_confident': 0.4, 'dael_confident': 0.3}
  text = sections._show_curves(
    types.SimpleNamespace(
      metrics=[{'step': 1.0, 'mixture/a': 2.0, 'mixture/b': 3.0} | shares],
      config=tiny.make_run_config(
        target_term='fixmatch+adamatch+dael', predictor='experts'
      ),
    ),
    palette.domain_styles('abt'),
  )
  assert list(read_pictures(text)) == [
    'Confident target samples',
    'Confident target samples (AdaMatch)',
    'Confident target samples (DAEL)',
    'Mixture loss',
  ]


def test_a_domain_has_one_colour_in_all_figures():
  styles = palette.domain_styles('abt')
  line = {'step': 1.0, 'alpha/a': 0.4, 'alpha/b': 0.6, 'class/a': 1.0}
  alpha = curves.draw_shares('α', [line], 'alpha', styles)
  losses = curves.draw_losses([line], 't', styles)['Class loss']
  of_a = [
    line.get_color()
    for figure in (alpha, losses)
    for line in figure.axes[0].lines
    if line.get_label() == 'a'
  ]
  assert of_a == [styles['a'].colour] * 2


def make_predicted(probabilities, labels):
  classes = ('x', 'y', 'z')
  images = np.zeros((len(labels), 4, 4, 3), np.uint8)
  labels = None if None in labels else np.array(labels, np.int32)
  domain = Domain('t', 'random', images, labels, classes)
  return Predicted(domain, np.array(probabilities), 100)


def test_confusions_mistakes_and_unsure_answers():
  predicted = make_predicted(
    [[0.9, 0.1, 0], [0.6, 0.4, 0], [0.2, 0.7, 0.1], [0.1, 0, 0.9]],
    [0, 1, 0, 1],
  )
  np.testing.assert_array_equal(
    answers.count_confusions(predicted), [[1, 1, 0], [1, 0, 1], [0, 0, 0]]
  )
  assert answers.find_confusions(predicted) == [
    'x taken for y: 1',
    'y taken for x: 1',
    'y taken for z: 1',
  ]
  assert pictures.find_mistakes(predicted).tolist() == [3, 2, 1]
  assert pictures.find_unsure(predicted).tolist() == [1, 2, 0, 3]
  assert predicted.accuracy == 0.25
  shown = pictures.show_answers(predicted, np.array([3]))
  assert '<b>z</b> 0.90<br>is y' in shown
  unlabelled = make_predicted([[0.9, 0.1, 0]], [None])
  assert unlabelled.accuracy is None
  assert '<br>' not in pictures.show_answers(unlabelled, np.array([0]))


def test_pictures_come_from_their_files(tmp_path):
  """Which have more pixels than the network is given, or no pixels at all."""
  Image.new('RGB', (300, 200), 'red').save(tmp_path / 'a.png')
  features = np.zeros((2, 5), np.float32)
  domain = Domain(
    't', f'folder {tmp_path}', features, None, ('x',), ('a.png', 'gone.png')
  )
  predicted = Predicted(domain, np.ones((2, 1)), 2)
  shown = pictures.show_answers(predicted, np.array([0, 1]))
  ((kind, data),) = read_pictures(shown).values()
  with Image.open(io.BytesIO(data)) as picture:
    assert (kind, picture.size) == ('jpeg', (144, 96))


def test_maps_keep_neighbours_together():
  rng = np.random.default_rng(0)
  centres = 50 * np.eye(6)[:2]
  features = np.concatenate([c + rng.normal(size=(30, 6)) for c in centres])
  for kind in ('PCA', 't-SNE'):
    points = maps.project(features, kind)
    assert points.shape == (60, 2)
    a, b = points[:30], points[30:]
    apart = np.linalg.norm(a.mean(axis=0) - b.mean(axis=0))
    assert apart > 2 * max(a.std(), b.std())
  assert maps.project(features[:, :1], 'PCA').shape == (60, 2)


@pytest.mark.slow
def test_the_page_is_refreshed_while_training_goes_on(tmp_path):
  seen = []
  writer = report.PageWriter()

  def watch(experiment, workdir):
    writer(experiment, workdir)
    seen.append((workdir / 'report' / 'index.html').read_text())

  config = tiny.make_run_config()
  train.train(config, tmp_path, tiny.make_domains(), 1, on_log=watch)
  assert len(seen) == 2  # the third is the last, which the command writes
  assert 'http-equiv="refresh"' in seen[0]
  assert 'Training goes on' in seen[0]
  assert 'step 2 of 6' in seen[0]
  assert seen[1] == seen[0]  # written less than twenty times its cost ago
  assert len(read_metrics(tmp_path)) == 3


@pytest.mark.slow
def test_names_are_escaped(tmp_path):
  _, _, text = make_page(tmp_path, experiment='<b>mine</b>')
  assert '<b>mine' not in text


def test_criteria_are_shown_beside_the_oracle(trained):
  text = trained[2]
  section = text.partition('<h2>Choosing without target labels</h2>')[2]
  section = section.partition('<h2>')[0]
  for name in ('entropy', 'information', 'nuclear_norm', 'density'):
    assert f'{name}, ' in section
  assert 'oracle: accuracy, by target labels' in section
  assert 'weighted_accuracy and dev_risk need holdout above 0' in section
