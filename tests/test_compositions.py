"""The table of compositions: its rows, differences and choices."""

import csv

import numpy as np
import pytest
from absl import flags
from made_up_runs import write_run
from scipy import stats

from experiments import compositions
from experiments.figures import (
  composition_choice,
  composition_figure,
  composition_table,
)
from experiments.runs import descriptions
from experiments.runs.scales import find_setting
from experiments.selection import agreeing
from moda_jax.errors import UserError
from moda_jax.objectives import find_method
from moda_jax.training.config_files import get_config
from moda_jax.training.variants import parse_variant

TINY = find_setting('digits', 'tiny')
DEFAULT = 'entropy (default without predictions)'
ROWS = ['moda_fm', 'fm', 'moda_fm:target_term=fixmatch+mcc']
# Accuracy and entropy by row, target and seed; two classes.
FIGURES = {
  ('moda_fm', 'mnist', 0): (0.50, 0.30),
  ('moda_fm', 'mnist', 1): (0.60, 0.30),
  ('moda_fm', 'mnistm', 0): (0.40, 0.30),
  ('fm', 'mnist', 0): (0.60, 0.20),
  ('fm', 'mnist', 1): (0.62, 0.40),
  ('fm', 'mnistm', 0): (0.37, 0.40),
  (ROWS[2], 'mnist', 0): (0.70, 0.40),
  (ROWS[2], 'mnist', 1): (0.80, 0.10),
  (ROWS[2], 'mnistm', 0): (0.45, 0.20),
}


def make_lines(plans, judged=True):
  lines = []
  for name, requests in plans.items():
    for request in requests:
      key = (name, request.target, request.seed)
      if key not in FIGURES:
        continue
      accuracy, entropy = FIGURES[key]
      said = {
        'selection/entropy': entropy,
        'selection/effective_classes': 2.0,
      }
      folder, config = request.folder, request.config()
      write_run(folder, config, accuracy, **(said if judged else {}))
      lines += descriptions.describe_run(folder, TINY)
  return lines


@pytest.fixture
def plans(study_flags):
  study_flags.seeds = 2
  flags.DEFINE_bool('agreement', False, 'as of the command')
  yield compositions.make_plans(compositions.find_variants('digits', ROWS))
  del study_flags.agreement


def test_a_line_has_what_was_said_without_labels(plans):
  lines = make_lines(plans)
  expected = {'entropy': 0.3, 'effective_classes': 2.0, 'classes': 2}
  assert lines[0]['criteria'] == expected
  assert make_lines(plans, judged=False)[0]['criteria'] == {}


def test_differences_are_between_pairs_of_one_target_and_seed(plans):
  own = {('a', 0): 53.0, ('a', 1): 51.0, ('b', 0): 50.0, ('c', 0): 0.0}
  other = {('a', 0): 50.0, ('a', 1): 50.0, ('b', 0): 48.0}
  mean, error, count = composition_table.compare(own, other)
  # Of 3, 1 and 2: variance 1, so that the error is 1/√3.
  assert (mean, count) == (pytest.approx(2), 3)
  assert error == pytest.approx(3**-0.5)
  assert composition_table.compare(own, {})[2] == 0


def test_a_composition_is_chosen_by_lowest_entropy(plans):
  found = {}
  for line in make_lines(plans):
    parts = line['config'].get('objective.target_term')
    name = ROWS[2] if parts else line['method']
    found.setdefault(name, {})[line['target'], line['seed']] = line
  default, entropy, random, best = composition_choice.choose(found)
  assert entropy.chosen == default.chosen
  assert default.criterion == DEFAULT
  assert default.chosen == {
    ('mnist', 0): 'fm',
    ('mnist', 1): ROWS[2],
    ('mnistm', 0): ROWS[2],
  }
  below = {('mnist', 0): 10.0, ('mnist', 1): 0.0, ('mnistm', 0): 0.0}
  assert default.below == pytest.approx(below)
  assert random.accuracies['mnist', 0] == pytest.approx(60)
  assert set(best.chosen.values()) == {ROWS[2]}
  for task, correlation in entropy.correlations.items():
    runs = [own[task] for own in found.values()]
    expected = stats.spearmanr(
      [-run['criteria']['entropy'] for run in runs],
      [run['accuracy'] for run in runs],
    )
    assert correlation == pytest.approx(expected.statistic)
  known = {('mnist', 0): dict(zip(ROWS, (0.9, 0.6, 0.7), strict=True))}
  default, *_ = composition_choice.choose(found, known)
  assert default.criterion == 'agreement (default)'
  assert default.chosen == {('mnist', 0): 'moda_fm'}
  del known['mnist', 0]['fm']  # it is not of the same compositions
  assert composition_choice.choose(found, known)[0].criterion == DEFAULT
  del found['fm']['mnist', 0]['criteria']
  assert ('mnist', 0) not in composition_choice.choose(found)[0].chosen


def test_the_table_of_compositions(plans, tmp_path):
  lines = make_lines(plans)
  out = tmp_path / 'drawn'
  files = compositions.draw(plans, ['mu_c=0.5'], TINY, lines, out)
  assert [f.suffix for f in files] == ['.md', '.csv', '.png', '.pdf']
  text = files[0].read_text()
  assert 'parts at their default values but for mu_c=0.5.' in text
  # 10, 2 and −3 points: mean 3, standard error √43/√3.
  row = '| `fm` | 61.0 ± 1.4 | 37.0 | 49.0 | +3.0 ± 3.8 | 3 | 1 of 3 |'
  assert row in text
  # 60, 80 and 45 chosen: 10, 20 and 5 points above MODA-FM.
  row = f'| {DEFAULT} | 70.0 ± 14.1 | 45.0 | 57.5 | +11.7 ± 4.4 | 3.3 |'
  assert row in text
  with files[1].open() as file:
    rows = list(csv.DictReader(file))
  assert len(rows) == 9
  assert sum(int(r[f'chosen by {DEFAULT}']) for r in rows) == 3


def make_row(*values, error=1.0):
  return composition_figure.Row(values, sum(values) / len(values), error)


def test_points_of_a_row_do_not_cover_one_another():
  """The targets of each row differ little, but for an outlier in one."""
  rows = {str(n): make_row(-2.0, -2.0, 1.0) for n in range(39)}
  rows['far'] = make_row(-22.46, 1.0, 1.0)
  targets = ['amazon', 'dslr', 'webcam']
  figure = composition_figure.draw('title', targets, rows)
  (axes,) = figure.axes
  points = {line.get_label(): line for line in axes.get_lines()}
  points = [points[name] for name in ('Amazon', 'DSLR', 'Webcam')]
  heights = [line.get_ydata()[0] for line in points]
  assert min(np.diff(heights)) > 0.1
  assert -0.5 < heights[0] < heights[-1] < 0.5
  assert len({line.get_marker() for line in points}) == 3
  assert [text.get_text() for text in axes.texts] == ['−22.5']
  figure.draw_without_rendering()
  low, high = axes.get_xlim()
  assert low > -10  # the arrow, and the mean of −6.8 ± 1
  assert high < 4


def test_a_single_run_has_no_standard_error():
  def find_labels(error):
    rows = {'fm': make_row(-2.0, error=error), 'moda': make_row(8.0)}
    figure = composition_figure.draw('title', ['mnistm'], rows)
    (legend,) = figure.legends
    (axes,) = figure.axes
    bars = [c for c in axes.containers for _ in c.lines[2][0].get_segments()]
    return [text.get_text() for text in legend.get_texts()], len(bars)

  assert find_labels(1.0) == (['MNIST-M', 'mean, standard error'], 2)
  assert find_labels(np.nan) == (['MNIST-M', 'mean, standard error'], 1)
  rows = {'fm': make_row(-2.0, error=np.nan)}
  figure = composition_figure.draw('title', ['mnistm'], rows)
  (text,) = figure.legends[0].get_texts()
  assert text.get_text() == 'MNIST-M'
  (line,) = [
    x for x in figure.axes[0].get_lines() if x.get_label() == 'MNIST-M'
  ]
  assert line.get_ydata() == [0]  # in the middle of its row


def test_old_lines_have_rows_and_no_choice(plans, tmp_path):
  lines = make_lines(plans, judged=False)
  for line in lines:
    del line['criteria']
  (text, *_) = compositions.draw(plans, [], TINY, lines, tmp_path / 'drawn')
  assert 'Nothing is chosen without target labels' in text.read_text()
  assert '+3.0 ± 3.8 | 3 |' in text.read_text()
  judged = make_lines(plans)
  (text, *_) = compositions.draw(
    plans, [], TINY, lines + judged, tmp_path / 'drawn'
  )
  assert '1 of 3' in text.read_text()
  with pytest.raises(UserError, match='only runs of moda_fm'):
    compositions.draw(plans, [], TINY, lines[:1], tmp_path / 'drawn')
  with pytest.raises(UserError, match='no runs of moda_fm to compare'):
    compositions.draw(plans, [], TINY, lines[-1:], tmp_path / 'drawn')


def test_every_row_is_a_method_of_its_own(study_flags):
  variants = compositions.find_variants('digits')
  assert 'mada' not in {v.text for v in compositions.find_variants('office31')}
  study_flags.targets = ['mnistm']
  plans = compositions.make_plans(variants)
  objectives = [q.config().objective for (q,) in plans.values()]
  methods = [find_method(objective) for objective in objectives]
  parts = [method.names for method in methods]
  assert len(set(parts)) == len(parts) == 26
  folders = {request.folder for (request,) in plans.values()}
  assert len(folders) == len(parts)


@pytest.mark.parametrize(
  ('text', 'named'),
  [
    ('modafm', "'modafm' is unknown; allowed are source_only"),
    ('moda_fm:weights', "'weights' must be key=value"),
    ('moda_fm:=mcc', "'=mcc' must be key=value"),
    ('moda_fm:weights=uniform:', "'' must be key=value"),
  ],
)
def test_what_is_no_composition_is_refused(text, named):
  with pytest.raises(UserError, match=named):
    parse_variant(text)


def test_agreements_are_kept(tmp_path):
  path = tmp_path / 'found.json'
  assert agreeing.read(path) == {}
  found = {('mnist', 0): {'fm': 0.5, 'moda_fm': 0.75}}
  assert agreeing.read(agreeing.write(found, path)) == found
  path.write_text('[1]')
  with pytest.raises(UserError, match='does not hold agreements'):
    agreeing.read(path)


def test_runs_that_are_not_finished_do_not_vote(tmp_path):
  config = get_config('mini:mnist,method=fm,steps=6')
  write_run(tmp_path / 'run', config, steps=4)
  with pytest.raises(UserError, match='not finished: step 4 of 6'):
    agreeing.measure({'fm': tmp_path / 'run'}, {})
  with pytest.raises(UserError, match='does not hold a run'):
    agreeing.measure({'fm': tmp_path / 'none'}, {})
