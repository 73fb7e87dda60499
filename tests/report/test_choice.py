"""The choice in words, on made-up predictions."""

import csv
import json

import numpy as np
import pytest
import tiny
from made_up_comparison import ALPHA, RUNS, collapse, make_compared, make_run

from moda_jax.report import choice_page, compared, worth
from moda_jax.report.choice import choose
from moda_jax.training.same_budget import BASELINE


def test_the_best_adapted_run_is_chosen():
  runs = [make_run(BASELINE, 0.5), make_run('fm', 5, 1), make_run('moda', 3, 2)]
  found = choose(runs)
  assert found.name == 'fm'
  assert found.verdict.startswith('fm is chosen')
  assert found.name == found.ranking.chosen
  assert any('criteria put it before source_only' in r for r in found.reasons)
  assert 'no run is better' in found.oracle


def test_how_many_answers_depend_on_the_choice():
  runs = [make_run(BASELINE, 0.5), make_run('fm', 5, 1), make_run('moda', 3, 2)]
  differ = sum(runs[0].judged.argmax(axis=1) != runs[1].judged.argmax(axis=1))
  assert any(f'in {differ} of 32 answers' in r for r in choose(runs).reasons)
  same = [run._replace(judged=runs[1].judged) for run in runs]
  same[0] = same[0]._replace(name='fm')
  same[1] = same[1]._replace(name=BASELINE)
  found = choose(same)
  assert found.name == 'fm'
  assert any('little depends on the choice' in r for r in found.reasons)


def test_adaptation_that_does_not_help_is_said_so():
  runs = [
    make_run(BASELINE, 6),
    make_run('fm', 0.2, 1),
    make_run('moda', 0.1, 2),
  ]
  found = choose(runs)
  assert found.name == BASELINE
  assert 'Adaptation does not help here' in found.verdict


def test_the_oracle_is_not_asked_for_the_choice():
  runs = [make_run(BASELINE, 0.5), make_run('fm', 5, 1), make_run('moda', 3, 2)]
  blind = [run._replace(accuracy=None) for run in runs]
  wrong = [
    run._replace(accuracy=a) for run, a in zip(runs, (1, 0, 0.5), strict=True)
  ]
  assert choose(blind).name == choose(wrong).name == choose(runs).name
  assert choose(blind).oracle == ''
  assert 'source_only with 100.0 %' in choose(wrong).oracle
  assert 'loses 100.0 points' in choose(wrong).oracle


def test_collapsed_and_failed_runs_are_refused():
  runs = [make_run(BASELINE, 2), collapse('fm'), make_run('moda', 4, 1)]
  found = choose(runs, {'mdan': 'it has not finished: loss is not finite'})
  assert found.name == 'moda'
  assert set(found.refused) == {'fm', 'mdan'}
  assert any('mdan is refused: it has not' in r for r in found.reasons)
  none = choose([collapse(BASELINE), collapse('fm')])
  assert none.name == ''
  assert 'No run can be recommended' in none.verdict


def test_what_is_left_of_two_is_not_said_to_be_better():
  alone = choose([make_run(BASELINE, 2), collapse('fm')])
  assert alone.name == BASELINE
  assert 'whether adaptation helps is not known' in alone.verdict
  assert 'does not help' not in alone.verdict
  assert not any('criteria agree' in reason for reason in alone.reasons)
  for found in (
    choose([collapse(BASELINE), make_run('fm', 4)]),
    choose([make_run('fm', 4)], {BASELINE: 'it has not finished'}),
  ):
    assert found.name == 'fm'
    assert 'source_only, which does not adapt, is refused' in found.verdict


def test_labels_of_the_target_choose_and_say_so():
  runs = [
    make_run(BASELINE, 0.5, labelled=(4, 5)),
    make_run('fm', 5, 1, labelled=(3, 5)),
    make_run('moda', 3, 2, labelled=(4, 5)),
  ]
  found = choose(runs)
  assert found.name == 'moda'  # before source_only by the criteria
  assert 'Labels of the target were used' in found.reasons[0]
  assert 'source_only 4, fm 3, moda 4' in found.reasons[0]
  assert 'Among equals' in found.reasons[0]


def read(path):
  with path.open(newline='') as file:
    return list(csv.DictReader(file))


def test_files_hold_what_was_found(tmp_path):
  found = make_compared(RUNS)
  compared.write_files(found, tmp_path)
  written = json.loads((tmp_path / 'comparison.json').read_text())
  assert written['chosen'] == 'fm'
  assert written['target_labels_used'] == 0
  assert written['weights_of'] == 'moda'
  assert [s['alpha'] for s in written['sources']] == list(ALPHA.values())
  distances = [s['before'] for s in written['sources']]
  assert distances == sorted(distances, reverse=True)  # c is nearest
  for run in RUNS:
    described = written['runs'][run.name]
    for name in ('entropy', 'density'):
      np.testing.assert_allclose(described['criteria'][name], run.scores[name])
    assert described['oracle_accuracy'] == run.accuracy
  shares = list(written['estimated_proportions'].values())
  np.testing.assert_allclose(sum(shares), 1, atol=1e-5)
  rows = read(tmp_path / 'predictions.csv')
  classes = found.sampled.classes
  assert [row['class'] for row in rows] == [
    classes[i] for i in RUNS[1].judged.argmax(axis=1)
  ]
  to_label = read(tmp_path / 'to_label.csv')
  assert {row['label'] for row in to_label} == {''}
  assert sorted(int(row['example']) for row in to_label) == list(range(32))


def test_what_is_labelled_is_not_asked_for_again(tmp_path):
  path = tmp_path / 'labels.csv'
  path.write_text('3,class 0\n4,class 1\n')
  found = make_compared(RUNS, str(path))
  assert len(found.to_label) == 30
  assert not {3, 4} & set(found.to_label)
  assert found.labels_used == 2
  text = choice_page.write_page(found, tmp_path).read_text()
  assert '2 labels of the target were used' in text


def test_the_page_says_what_was_found(tmp_path):
  text = choice_page.write_page(make_compared(RUNS), tmp_path).read_text()
  for shown in (
    'fm is chosen',
    'α in moda',
    'Nearest without adaptation: c',
    'The oracle is accuracy by the labels of the target',
    'Share of each class',
    'fm/report/index.html',
    'to_label.csv lists 32',
  ):
    assert shown in text, shown
  assert 'used: half of them train' not in text
  assert 'Each source left out' not in text


def test_without_labels_there_is_no_oracle(tmp_path):
  runs = [run._replace(accuracy=None) for run in RUNS]
  target = tiny.make_domains().target._replace(labels=None)
  found = make_compared(runs, sampled=target, written=target)
  text = choice_page.write_page(found, tmp_path).read_text()
  assert 'racle' not in text
  assert ', true' not in text


def test_sources_left_out_and_a_run_without_recommendation(tmp_path):
  whole = RUNS[1]._replace(name='all sources')
  others = [make_run(f'without {s}', i, i) for i, s in enumerate('abc', 3)]
  left = ([whole, *others], choose([whole, *others]))
  found = make_compared(RUNS, left_out=left)
  text = choice_page.write_page(found, tmp_path).read_text()
  assert 'Each source left out' in text
  assert 'without c' in text
  runs = [collapse(BASELINE), collapse('fm')]
  choice = choose(runs)
  none = found._replace(looked=runs, choice=choice, left_out=None)
  text = choice_page.write_page(none, tmp_path).read_text()
  assert 'No run can be recommended' in text
  assert 'In each column the best is bold' in text
  assert 'class 0 ×2' in text  # where all are refused, all vote
  compared.write_files(none, tmp_path)
  assert json.loads((tmp_path / 'comparison.json').read_text())['chosen'] == ''
  assert not (tmp_path / 'predictions.csv').exists()


def test_a_source_with_a_single_example_has_no_distance():
  run = make_run(BASELINE, 1)
  few = run._replace(features=run.features | {'b': run.features['b'][:1]})
  found = worth.value_sources([few], BASELINE, (BASELINE,))
  assert [own.before is None for own in found] == [False, True, False]


@pytest.mark.parametrize('alpha', [{}, ALPHA])
def test_the_weights_shown_are_those_of_the_best_weighted_run(alpha):
  runs = [RUNS[0], RUNS[1]._replace(alpha=alpha), RUNS[2]]
  found = worth.find_weighted(runs, ('fm', 'moda', BASELINE))
  assert found.name == ('fm' if alpha else 'moda')
  assert worth.find_weighted(runs[:1], (BASELINE,)) is None
