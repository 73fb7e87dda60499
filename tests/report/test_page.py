"""The page of a run: one file with everything in it."""

import base64
import io
import json
import re
import shutil
import types

import numpy as np
import pytest
import tiny
from PIL import Image

from moda_jax import report, select
from moda_jax.data import learned
from moda_jax.data.domains import Domain
from moda_jax.data.operations import OPERATIONS
from moda_jax.data.options import ViewOptions
from moda_jax.errors import UserError
from moda_jax.report import __main__ as command
from moda_jax.report import (
  answers,
  candidates,
  criteria,
  curves,
  magnitudes,
  maps,
  palette,
  pictures,
  runs,
  sections,
)
from moda_jax.report.examination import Predicted
from moda_jax.selection.criteria import CRITERIA
from moda_jax.selection.ranking import rank
from moda_jax.training import loop as train
from moda_jax.training.candidates import open_candidates
from moda_jax.training.run_folder import read_metrics


def train_tiny(workdir, domains=None, **values):
  config = tiny.make_run_config(**values)
  domains = domains or tiny.make_domains()
  return train.train(config, workdir, domains, devices=1)


def make_page(tmp_path, domains=None, **values):
  outcome = train_tiny(tmp_path, domains, **values)
  page = report.write_run_page(outcome, tmp_path)
  return outcome, page, page.read_text()


def drop_labels(domains):
  target = domains.target._replace(labels=None)
  return domains._replace(target=target, test=target)


def read_pictures(text):
  """Returns kind and bytes of all pictures in the page, by `alt`."""
  found = re.findall(
    r'<img[^>]* src="data:image/([^;]+);base64,([^"]+)" alt="([^"]*)"', text
  )
  return {alt: (kind, base64.b64decode(data)) for kind, data, alt in found}


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


@pytest.fixture(scope='module')
def two(tmp_path_factory):
  """Returns the folders of two runs, with known accuracies."""
  folder = tmp_path_factory.mktemp('two')
  for method in ('source_only', 'moda_fm'):
    train_tiny(folder / method, method=method)
  return folder


def set_accuracy(workdir, value):
  path = workdir / 'metrics.jsonl'
  text = re.sub(
    r'"target/accuracy": [\d.]+',
    f'"target/accuracy": {value}',
    path.read_text(),
  )
  path.write_text(text)


@pytest.mark.parametrize(
  ('after', 'verdict'),
  [
    (0.75, 'adaptation helped, by 25.0 points'),
    (0.25, 'adaptation did harm, by 25.0 points'),
  ],
)
def test_runs_are_compared(two, tmp_path, monkeypatch, after, verdict, capsys):
  """From their folders; the data is gone, and the page says so."""
  for method in ('source_only', 'moda_fm'):
    shutil.copytree(two / method, tmp_path / method)
  set_accuracy(tmp_path / 'source_only', 0.5)
  set_accuracy(tmp_path / 'moda_fm', after)
  monkeypatch.chdir(tmp_path)
  command.main(['source_only', 'moda_fm'])
  page = tmp_path / 'report' / 'index.html'
  assert f'report: {page}' in capsys.readouterr().out
  text = page.read_text()
  assert verdict in text
  assert 'objective.method</td><td>source_only</td><td>moda_fm' in text
  assert text.count('<details') == 4  # each run, and each run's config
  assert 'Nothing is shown of the data' in text


def test_a_difference_by_chance_is_called_so(two):
  domains = tiny.make_domains()
  outcome = train_tiny(two / 'moda_fm')
  shown = []
  for name, accuracy in (('source_only', 0.5), ('moda_fm', 0.6)):
    run = runs.from_outcome(name, outcome, two / name)
    config = tiny.make_run_config(method=name)
    lines = [{'step': 6.0, 'target/accuracy': accuracy}]
    shown.append(run._replace(config=config, metrics=lines))
  from moda_jax.report import comparison

  (sentence,) = comparison.judge(shown)
  assert f'too small for {domains.test.size} examples' in sentence


def test_runs_of_one_method_are_named_by_their_folders(two, tmp_path):
  shutil.copytree(two / 'moda_fm', tmp_path / 'other')
  opened = runs.open_runs([two / 'moda_fm', tmp_path / 'other'])
  assert [run.name for run in opened] == ['moda_fm', 'other']
  opened = runs.open_runs([two / 'moda_fm', two / 'source_only'])
  assert [run.name for run in opened] == ['moda_fm', 'source_only']


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    (['nothing'], 'does not hold a run'),
    (['nothing', 'nothing'], 'given twice'),
  ],
)
def test_what_is_not_a_run_is_refused(
  tmp_path, monkeypatch, arguments, message
):
  monkeypatch.chdir(tmp_path)
  with pytest.raises(UserError, match=message):
    command.main(arguments)
  assert list(tmp_path.iterdir()) == []


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


def test_without_labels_criteria_are_shown_without_an_oracle(tmp_path):
  outcome, _, text = make_page(
    tmp_path,
    drop_labels(tiny.make_domains()),
    selection='information',
    method='source_only',
    evaluate_on='target',
    holdout=0.25,
  )
  section = text.partition('<h2>Choosing without target labels</h2>')[2]
  section = section.partition('<h2>')[0]
  assert 'weighted_accuracy, larger is better' in section
  assert 'Taken by information: step ' in section
  assert '<i>oracle' not in section
  assert ' %' not in section
  run = runs.from_outcome('earlier', outcome, tmp_path)
  fewer = [
    {k: v for k, v in line.items() if k != 'selection/dev_risk'}
    for line in run.metrics
  ]
  section = criteria.show_criteria(run._replace(metrics=fewer))
  assert 'weighted_accuracy' in section
  assert 'need holdout' not in section  # which the run has


def test_criteria_of_earlier_versions_are_passed_over(tmp_path):
  """By the report, by the choice among finished runs, and by comparisons."""
  outcome = train_tiny(tmp_path, method='source_only', holdout=0.25)
  lines = [line | {'selection/no_more': 0.5} for line in read_metrics(tmp_path)]
  text = ''.join(f'{json.dumps(line)}\n' for line in lines)
  (tmp_path / 'metrics.jsonl').write_text(text)
  (run,) = runs.open_runs([tmp_path])
  assert 'selection/no_more' in run.metrics[-1]
  found = open_candidates([tmp_path])
  ranking = rank([each.candidate for each in found])
  for shown in (
    criteria.show_criteria(run),
    criteria.show_candidates([run]),
    select.describe(found, ranking),
  ):
    assert 'nuclear_norm' in shown
    assert 'no_more' not in shown
  looked = candidates.look('earlier', outcome, tmp_path)
  for scores in (found[0].candidate.scores, looked.scores):
    assert set(scores) == set(CRITERIA)


def test_learned_views_show_the_magnitude_of_each_operation(tmp_path):
  _, _, text = make_page(tmp_path, strong='learned')
  found = read_pictures(text)
  assert 'Mean magnitude' in found
  assert 'Magnitude of each operation' in found
  assert '<h2>Learned views</h2>' in text


def test_the_table_of_magnitudes():
  weights = np.full((2, *learned.SHAPE), 1e-9)  # of two seeds
  rotate, invert = OPERATIONS.index('Rotate'), OPERATIONS.index('Invert')
  weights[0, rotate, 4] = weights[1, rotate, 6] = 1.0  # 12 and 18
  weights[:, invert, 10] = 1.0
  options = ViewOptions(randaugment_exclude=('FlipX',))
  table = magnitudes.make_table(weights, options)
  assert set(table) == set(OPERATIONS) - {'FlipX'}
  means = {k: magnitudes.mean_magnitude(p) for k, p in table.items()}
  assert means['Rotate'] == pytest.approx(15)
  assert means['Invert'] == pytest.approx(30)
  # Equal weights draw every magnitude alike.
  assert means['Solarize'] == pytest.approx(15)
  assert next(iter(table)) == 'Invert'
  axes = magnitudes.draw_table(table).axes[0]
  assert [t.get_text() for t in axes.get_yticklabels()] == list(table)
  assert axes.texts[0].get_text() == '30.0'
