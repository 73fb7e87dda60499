"""The study of criteria: correlations and points lost, from made-up runs."""

import csv
import math

import numpy as np
import pytest
from made_up_runs import write_run

from experiments import criteria
from experiments.selection import finished
from moda_jax.errors import UserError
from moda_jax.selection.ranking import Candidate
from moda_jax.training.config_files import get_config

ACCURACIES = (0.5, 0.9, 0.7, 0.6)


def make_candidates(**scores):
  return [
    Candidate(f'run{i}', {name: values[i] for name, values in scores.items()})
    for i in range(len(ACCURACIES))
  ]


def score(**scores):
  made = criteria.score_criteria(
    make_candidates(**scores), ACCURACIES, 'digits', 'mnistm'
  )
  return {s.criterion: s for s in made}


def rank_by_hand(values):
  return [sum(x < y for x in values) for y in values]


def test_a_criterion_is_correlated_in_its_own_direction():
  found = score(entropy=(4.0, 1.0, 2.0, 3.0), density=(4.0, 1.0, 2.0, 3.0))
  assert math.isclose(found['entropy'].correlation, 1)
  assert math.isclose(found['density'].correlation, -1)
  assert math.isclose(found['entropy'].lost, 0, abs_tol=1e-9)
  assert math.isclose(found['density'].lost, 40)


def test_the_correlation_is_that_of_ranks():
  values = (0.3, 0.2, 0.9, 0.1)
  expected = np.corrcoef(rank_by_hand(values), rank_by_hand(ACCURACIES))[0, 1]
  found = score(information=values)['information']
  np.testing.assert_allclose(found.correlation, expected)
  np.testing.assert_allclose(found.lost, 20)


def test_chance_the_worst_and_the_default_are_shown_beside():
  found = score(entropy=(4.0, 3.0, 2.0, 1.0))
  np.testing.assert_allclose(found['at random'].lost, 100 * (0.9 - 0.675))
  np.testing.assert_allclose(found['the worst'].lost, 40)
  (default,) = (s for name, s in found.items() if name.startswith('default'))
  np.testing.assert_allclose(default.lost, 30)


def test_a_constant_score_has_no_correlation():
  found = score(source_accuracy=(1.0,) * 4, entropy=(4.0, 3.0, 2.0, 1.0))
  assert math.isnan(found['source_accuracy'].correlation)
  table = criteria.tabulate(list(found.values()))
  assert '| source_accuracy | 1 | 4 |  | 40.0 |' in table


def test_tables_are_written(tmp_path):
  scores = list(score(entropy=(4.0, 1.0, 2.0, 3.0)).values())
  text, table = criteria.write(scores, tmp_path / 'new' / 'found')
  assert '| entropy | 1 | 4 | +1.00 | 0.0 |' in text.read_text()
  assert '### digits, mnistm, among runs' in text.read_text()
  with table.open() as file:
    rows = list(csv.DictReader(file))
  assert [row['criterion'] for row in rows] == [s.criterion for s in scores]


def test_folders_without_runs_are_refused(tmp_path):
  with pytest.raises(UserError, match='there is no run'):
    finished.find_runs([str(tmp_path / '*')])


def test_targets_are_averaged():
  good = list(score(entropy=(4.0, 1.0, 2.0, 3.0)).values())
  bad = [
    s._replace(target='svhn')
    for s in score(entropy=(1.0, 4.0, 3.0, 2.0)).values()
  ]
  (entropy, *_) = criteria.average([*good, *bad])
  np.testing.assert_allclose(entropy.correlation, 0, atol=1e-9)
  np.testing.assert_allclose(entropy.lost, 20)
  assert (entropy.candidates, entropy.targets) == (8, 2)


def test_a_criterion_not_known_of_all_is_left_out():
  candidates = make_candidates(entropy=(4.0, 1.0, 2.0, 3.0))
  candidates[0].scores['source_accuracy'] = 0.9
  made = criteria.score_criteria(candidates, ACCURACIES)
  assert 'source_accuracy' not in [s.criterion for s in made]


def test_what_no_criterion_can_rank_is_passed_over(capsys):
  candidates = [Candidate('a', {}), Candidate('b', {'entropy': 0.1})]
  assert criteria.score_criteria(candidates, [0.1, 0.2], 'digits', 'svhn') == []
  assert 'digits, svhn: No criterion is known' in capsys.readouterr().out


def write(folder, argument, **values):
  pairs = 'steps=6,width=0.0625'
  write_run(folder, get_config(f'{argument},{pairs}'), **values)


def test_runs_are_found_at_any_depth_and_sorted(tmp_path, capsys):
  a = tmp_path / 'digits_tiny' / '' / 'mnist' / 'fm' / '0'
  b = tmp_path / 'digits_tiny' / 'mu_c=0.5' / 'mnist' / 'fm' / '0'
  write(a, 'mini:mnist,method=fm')
  write(b, 'mini:mnist,method=fm,mu_c=0.5')
  (a / 'checkpoints').mkdir()
  (a / 'checkpoints' / 'config.json').write_text('{}')  # is no run
  write(tmp_path / 'c', 'mini:mnistm,method=fm')
  write(tmp_path / 'going on', 'mini:mnistm,method=fm', steps=3)
  write(tmp_path / 'labelled', 'mini:mnistm,method=fm,target_labels=x.csv')
  write(tmp_path / 'reviews', 'reviews:books,method=fm')
  (tmp_path / 'broken').mkdir()
  (tmp_path / 'broken' / 'config.json').write_text('{')
  folders = finished.find_runs([str(tmp_path), f'{tmp_path}/*'])
  assert len(folders) == 7
  groups = finished.group_runs(folders)
  assert {(g.experiment, g.target): g.folders for g in groups} == {
    ('mini digits', 'mnist'): [a, b],
    ('mini digits', 'mnistm'): [tmp_path / 'c'],
    ('reviews', 'books'): [tmp_path / 'reviews'],
  }
  said = capsys.readouterr().out
  assert 'going on is not finished: step 3 of 6' in said
  assert 'labelled was trained on labels of the target' in said
  assert 'broken/config.json is damaged' in said


def test_groups_are_named_by_what_tells_them_apart(tmp_path):
  for name in 'abc':
    config = get_config('mini:mnist,method=fm,steps=6')
    if name == 'b':
      config.network.width = 0.5
    if name == 'c':
      config.data.sources = ('uci', 'synth')
    write_run(tmp_path / name, config)
  groups = finished.group_runs(finished.find_runs([str(tmp_path)]))
  named = {g.folders[0].name: (g.experiment, g.target) for g in groups}
  assert len({*named.values()}) == 3
  assert named['b'][0].endswith('width=0.5')
  assert named['c'][1] == 'mnist from uci+synth'


def test_two_candidates_that_are_left_have_no_correlation():
  candidates = [
    Candidate(f'run{i}', {'entropy': x}, None, effective, 10)
    for i, (x, effective) in enumerate([(0.1, 9.0), (0.2, 9.0), (0.0, 1.0)])
  ]
  entropy, *_ = criteria.score_criteria(candidates, [0.5, 0.7, 0.1])
  assert (entropy.criterion, entropy.candidates) == ('entropy', 2)
  assert math.isnan(entropy.correlation)
  np.testing.assert_allclose(entropy.lost, 20)
