"""Sections of the page: criteria without labels, and learned views."""

import json

import numpy as np
import pytest
import tiny
from pages import drop_labels, make_page, read_pictures, train_tiny

from moda_jax import select
from moda_jax.data import learned
from moda_jax.data.operations import OPERATIONS
from moda_jax.data.options import ViewOptions
from moda_jax.report import (
  candidates,
  criteria,
  magnitudes,
  runs,
)
from moda_jax.selection.criteria import CRITERIA
from moda_jax.selection.ranking import rank
from moda_jax.training.candidates import open_candidates
from moda_jax.training.run_folder import read_metrics


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
