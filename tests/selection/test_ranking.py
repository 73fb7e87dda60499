"""Candidates ranked by criteria, against loops, properties and bad input."""

import looped_criteria as twins
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moda_jax.errors import UserError
from moda_jax.selection.agreement import agreements
from moda_jax.selection.criteria import CRITERIA
from moda_jax.selection.ranking import DEFAULTS, Candidate, rank


def make_probabilities(seed, count=40, classes=4, scale=2.0):
  logits = scale * np.random.default_rng(seed).normal(size=(count, classes))
  return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


def make_candidates(count=4):
  rng = np.random.default_rng(0)
  return [
    Candidate(
      f'run{i}', dict.fromkeys(CRITERIA, rng.random()), make_probabilities(i)
    )
    for i in range(count)
  ]


@pytest.mark.parametrize('seed', range(3))
def test_agreement_is_its_formula(seed):
  predicted = [make_probabilities(10 * seed + k) for k in range(5)]
  np.testing.assert_allclose(
    agreements(predicted), twins.agreements(predicted), rtol=1e-12
  )


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(4)))
def test_agreement_follows_the_candidates(order):
  predicted = [make_probabilities(k) for k in range(4)]
  shares = agreements(predicted)
  assert agreements([predicted[k] for k in order]) == [shares[k] for k in order]


def test_agreement_of_a_majority():
  right = np.tile(np.eye(3), (4, 1))
  wrong = np.roll(right, 1, axis=1)
  assert agreements([right, right, wrong]) == [1, 1, 0]


def test_predictions_of_different_shapes_do_not_agree():
  with pytest.raises(ValueError, match='one shape'):
    agreements([make_probabilities(0), make_probabilities(1, count=3)])
  with pytest.raises(ValueError, match='one shape'):
    agreements([])


@pytest.mark.parametrize('name', CRITERIA)
def test_a_criterion_puts_the_best_first(name):
  scores = {'a': 0.2, 'b': 0.9, 'c': 0.5}
  candidates = [Candidate(key, {name: x}) for key, x in scores.items()]
  ranking = rank(candidates, name)
  best_first = ('b', 'c', 'a') if CRITERIA[name].higher_is_better else 'acb'
  assert ranking.orders == {name: tuple(best_first)}
  assert ranking.scores == {name: scores}
  assert (ranking.chosen, ranking.criterion) == (best_first[0], name)
  assert f'{name} of 3 candidates: ' in ranking.reason


def test_equal_scores_keep_the_order_given():
  candidates = [Candidate(name, {'density': 1.0}) for name in 'cab']
  assert rank(candidates).orders['density'] == ('c', 'a', 'b')


def test_three_with_predictions_are_chosen_by_agreement():
  candidates = make_candidates()
  ranking = rank(candidates)
  assert ranking.criterion == DEFAULTS[0] == 'agreement'
  shares = twins.agreements([c.probabilities for c in candidates])
  assert ranking.chosen == f'run{np.argmax(shares)}'
  assert list(ranking.orders) == ['agreement', *CRITERIA]
  np.testing.assert_allclose(
    list(ranking.scores['agreement'].values()), shares, rtol=1e-12
  )


def test_two_candidates_are_chosen_by_entropy():
  ranking = rank(make_candidates(2))
  assert ranking.criterion == 'entropy'
  assert 'agreement' not in ranking.orders
  with pytest.raises(UserError, match='needs three candidates'):
    rank(make_candidates(2), 'agreement')


def test_a_collapsed_candidate_is_refused_with_the_reason():
  one_class = np.tile(np.eye(4)[1], (40, 1))
  best = Candidate('one', {'entropy': 0.0}, one_class)
  ranking = rank([best, *make_candidates(3)])
  assert list(ranking.refused) == ['one']
  assert 'lies on 1.0 effective classes of 4' in ranking.refused['one']
  assert 'one' not in ranking.orders['entropy']
  # Nor has it a vote.
  assert ranking.scores == rank(make_candidates(3)).scores


def test_few_examples_of_many_classes_have_not_collapsed():
  right = Candidate('right', {'entropy': 0.0}, np.eye(31)[:4])
  assert rank([right]).chosen == 'right'
  wrong = Candidate('wrong', {'entropy': 0.0}, np.eye(31)[[0, 0, 0, 0]])
  assert 'effective classes of 31' in rank([wrong]).refused['wrong']


def test_predictions_that_are_not_finite_are_refused_with_the_reason():
  broken = Candidate('broken', {'entropy': 0.0}, np.full((40, 4), np.nan))
  ranking = rank([broken, *make_candidates(3)])
  assert list(ranking.refused) == ['broken']
  assert 'some values are not finite' in ranking.refused['broken']
  assert ranking.scores == rank(make_candidates(3)).scores


def test_a_collapse_is_known_without_predictions_too():
  few = Candidate('few', {'entropy': 0.1}, None, 1.2, 10)
  fine = Candidate('fine', {'entropy': 0.9}, None, 8.0, 10)
  ranking = rank([few, fine])
  assert list(ranking.refused) == ['few']
  assert ranking.reason == 'fine is the only candidate that is not refused.'


def test_where_all_have_collapsed_none_is_chosen():
  one_class = np.tile(np.eye(4)[1], (40, 1))
  ranking = rank([Candidate('a', {'entropy': 0.0}, one_class)])
  assert ranking.chosen == ''
  assert ranking.reason == 'All candidates are refused.'


def test_a_score_that_is_missing_or_not_finite_chooses_nothing():
  candidates = [
    Candidate('a', {'density': 1.0, 'entropy': float('nan')}),
    Candidate('b', {'density': 2.0, 'entropy': 0.5, 'source_accuracy': 0.5}),
  ]
  ranking = rank(candidates)
  assert (ranking.criterion, ranking.chosen) == ('density', 'b')
  assert ranking.orders['entropy'] == ('b',)
  with pytest.raises(UserError, match=r'entropy.* is not known of all of a, b'):
    rank(candidates, 'entropy')
  with pytest.raises(UserError, match='No criterion is known of all of a'):
    rank([Candidate('a', {})])


def test_what_cannot_be_compared_is_refused():
  with pytest.raises(UserError, match='no candidate'):
    rank([])
  with pytest.raises(UserError, match='different names'):
    rank([Candidate('a', {}), Candidate('a', {})])
  with pytest.raises(UserError, match=r'a: \(40, 4\), b: \(40, 5\)'):
    rank(
      [
        Candidate('a', {}, make_probabilities(0)),
        Candidate('b', {}, make_probabilities(0, classes=5)),
      ]
    )
  with pytest.raises(UserError, match=r"no criterion 'accuracy'; .*agreement"):
    rank(make_candidates(), 'accuracy')
