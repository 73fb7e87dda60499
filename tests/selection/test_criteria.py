"""The criteria against twins in loops, at their extremes, on bad input."""

import math
import tracemalloc

import looped_criteria as twins
import numpy as np
import pytest

from moda_jax.selection import certainty, density, sources
from moda_jax.selection.criteria import CRITERIA, weigh
from moda_jax.selection.observed import Held, Observed
from moda_jax.selection.ranking import badness

CLASSES, FEATURES = 4, 3


def make_probabilities(count=30, seed=0):
  logits = 2 * np.random.default_rng(seed).normal(size=(count, CLASSES))
  return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


def make_observed(seed=0, count=30, held=20):
  rng = np.random.default_rng(seed)
  return Observed(
    make_probabilities(count, seed),
    rng.normal(size=(count, FEATURES)) + 0.5,
    Held(
      make_probabilities(held, seed + 1),
      rng.integers(0, CLASSES, held),
      rng.normal(size=(held, FEATURES)),
    ),
  )


TWINS = {
  'entropy': lambda seen: twins.mean_entropy(seen.probabilities),
  'information': lambda seen: twins.information(seen.probabilities),
  'nuclear_norm': lambda seen: twins.nuclear_norm(seen.probabilities),
  'density': lambda seen: twins.density(seen.probabilities),
  'source_accuracy': lambda seen: (
    sum(
      list(p).index(max(p)) == y
      for p, y in zip(seen.held.probabilities, seen.held.labels, strict=True)
    )
    / len(seen.held.labels)
  ),
  'weighted_accuracy': lambda seen: twins.weighted_accuracy(
    seen.held, seen.features
  ),
  'dev_risk': lambda seen: twins.dev_risk(seen.held, seen.features),
}
# Where a solver stops, not rounding alone.
TOLERANCE = {'weighted_accuracy': 1e-5, 'dev_risk': 1e-4, 'nuclear_norm': 1e-7}


@pytest.mark.parametrize('seed', range(3))
@pytest.mark.parametrize('name', CRITERIA)
def test_every_criterion_is_its_formula(name, seed):
  seen = make_observed(seed)
  found = CRITERIA[name].measure(seen)
  assert type(found) is float
  expected = TWINS[name](seen)
  np.testing.assert_allclose(found, expected, rtol=TOLERANCE.get(name, 1e-11))


def show(sharpness, seed=0):
  """Returns what a model shows that is right the surer, the sharper it is."""
  rng = np.random.default_rng(seed)
  truth = rng.integers(0, CLASSES, 90)
  noise = 3 * rng.normal(size=(90, CLASSES))  # it is sure where it is wrong
  logits = sharpness * np.eye(CLASSES)[truth] + noise
  p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
  target, held = slice(0, 60), slice(60, 90)
  return Observed(
    p[target],
    logits[target],
    Held(p[held], truth[held], logits[held]),
  )


@pytest.mark.parametrize('seed', range(3))
@pytest.mark.parametrize('name', CRITERIA)
def test_every_criterion_prefers_the_better_model(name, seed):
  measure = CRITERIA[name].measure
  good, poor = (badness(name, measure(show(s, seed))) for s in (20, 2))
  assert good < poor


@pytest.mark.parametrize('name', CRITERIA)
def test_the_order_of_examples_does_not_matter(name):
  seen = make_observed()
  rng = np.random.default_rng(5)
  order, other = rng.permutation(30), rng.permutation(20)
  held = Held(*(x[other] for x in seen.held))
  shuffled = Observed(seen.probabilities[order], seen.features[order], held)
  measure = CRITERIA[name].measure
  rtol = TOLERANCE.get(name, 1e-11)
  np.testing.assert_allclose(measure(shuffled), measure(seen), rtol=rtol)


@pytest.mark.parametrize('name', CRITERIA)
def test_what_a_criterion_needs_is_asked_for(name):
  criterion, seen = CRITERIA[name], make_observed()
  needed = {
    'held': (criterion.needs_held, 'kept out of training are needed'),
    'features': (criterion.needs_features, 'features of the target are needed'),
  }
  for field, (is_needed, message) in needed.items():
    without = seen._replace(**{field: None})
    assert criterion.can_measure(without) == (not is_needed)
    if is_needed:
      with pytest.raises(ValueError, match=message):
        criterion.measure(without)
    else:
      assert criterion.measure(without) == criterion.measure(seen)


@pytest.mark.parametrize('name', CRITERIA)
def test_weights_that_are_given_are_not_computed_again(name, monkeypatch):
  seen = make_observed()
  weighed = weigh(seen)
  expected = CRITERIA[name].measure(seen)
  monkeypatch.setattr(sources, 'importance_weights', None)
  assert CRITERIA[name].measure(weighed) == expected
  assert weigh(weighed) is weighed
  bare = seen._replace(held=None)
  assert weigh(bare) is bare


def test_certain_and_balanced_predictions_are_the_best():
  best = np.tile(np.eye(CLASSES), (5, 1))
  assert certainty.mean_entropy(best) == 0
  np.testing.assert_allclose(certainty.information(best), math.log(CLASSES))
  np.testing.assert_allclose(certainty.nuclear_norm(best), 1)
  np.testing.assert_allclose(certainty.effective_classes(best), CLASSES)
  assert not certainty.has_collapsed(best)


def test_predictions_that_say_nothing():
  equal = np.full((20, CLASSES), 1 / CLASSES)
  np.testing.assert_allclose(certainty.mean_entropy(equal), math.log(CLASSES))
  np.testing.assert_allclose(certainty.information(equal), 0, atol=1e-12)
  # Of rank 1: √20 · |p|, over √(20 · 4).
  np.testing.assert_allclose(certainty.nuclear_norm(equal), 1 / CLASSES)
  np.testing.assert_allclose(density.neighbourhood_density(equal), np.log(19))


@pytest.mark.parametrize('classes', [2, 3, 10, 31])
def test_one_class_for_everything_has_collapsed(classes):
  one = np.tile(np.eye(classes)[0], (20, 1))
  assert certainty.effective_classes(one) == 1
  assert certainty.has_collapsed(one)
  assert certainty.mean_entropy(one) == 0  # which is why it must be refused
  assert not certainty.has_collapsed(np.eye(classes))


def test_collapse_by_hand():
  np.testing.assert_allclose(
    certainty.effective_classes(make_probabilities()),
    math.exp(twins.entropy(twins.mean(make_probabilities()))),
  )
  few = np.eye(31)[[0, 5, 9, 30]]  # as many classes as there are examples
  assert not certainty.has_collapsed(few)
  assert certainty.has_collapsed(few[[0, 0, 0, 0]])
  assert certainty.is_few(1.7, 4)
  assert certainty.is_few(3.2, 10)
  assert not certainty.is_few(3.3, 10)


def test_tight_groups_are_denser_than_scattered_rows():
  rng = np.random.default_rng(0)
  groups = np.repeat(np.eye(4), 10, axis=0) + 0.01 * rng.normal(size=(40, 4))
  scattered = rng.normal(size=(40, 4))
  assert density.neighbourhood_density(groups) > density.neighbourhood_density(
    scattered
  )


@pytest.mark.parametrize('at_a_time', [1, 30, 100, 899, 900, 10**6])
def test_density_does_not_depend_on_the_chunks(at_a_time):
  rows = make_probabilities()
  np.testing.assert_allclose(
    density.neighbourhood_density(rows, at_a_time=at_a_time),
    twins.density(rows),
  )


def test_density_bounds_its_memory():
  rows = make_probabilities(4000)
  tracemalloc.start()
  density.neighbourhood_density(rows, at_a_time=100_000)
  _, peak = tracemalloc.get_traced_memory()
  tracemalloc.stop()
  assert peak < 4000**2 * 8 / 10  # of a tenth of all similarities


def test_weights_are_those_of_the_twin():
  seen = make_observed()
  found = sources.importance_weights(seen.held.features, seen.features)
  expected = twins.importance_weights(seen.held.features, seen.features)
  np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_weights_of_domains_that_are_alike_are_1():
  rows = make_observed().features
  found = sources.importance_weights(rows, np.tile(rows, (2, 1)))
  np.testing.assert_allclose(found, 1, atol=1e-5)


def test_separate_domains_and_constant_features_have_finite_weights():
  source = np.c_[np.arange(10.0), np.ones(10)]
  found = sources.importance_weights(source, source + np.array([100, 0]))
  assert np.isfinite(found).all()
  assert (found > 0).all()


def test_weighting_counts_what_looks_like_the_target():
  features = np.linspace(-1, 1, 40)[:, None]
  labels = np.zeros(40, int)
  probabilities = np.eye(2)[(features[:, 0] < 0).astype(int)]
  held = Held(probabilities, labels, features)
  assert sources.source_accuracy(held) == 0.5
  for right, target in ((1, features[20:]), (0, features[:20])):
    weights = sources.importance_weights(features, target)
    accuracy = sources.weighted_accuracy(held, weights)
    assert abs(accuracy - right) < 0.2
    assert abs(sources.validation_risk(held, weights) - (1 - right)) < 0.2


def test_the_control_variate_varies_less_about_the_same_mean():
  rng = np.random.default_rng(0)
  plain, corrected = [], []
  for _ in range(300):
    weights = rng.exponential(size=200)  # of mean 1
    wrong = rng.random(200) < 0.9
    held = Held(np.eye(2)[wrong.astype(int)], np.zeros(200, int), None)
    plain.append((weights * wrong).mean())
    corrected.append(sources.validation_risk(held, weights))
  assert abs(np.mean(corrected) - 0.9) < 0.01
  assert np.std(corrected) < 0.6 * np.std(plain)


def test_equal_weights_give_the_plain_risk():
  held = Held(np.eye(2)[[0, 1, 1, 1]], np.zeros(4, int), None)
  assert sources.validation_risk(held, np.ones(4)) == 0.75


@pytest.mark.parametrize('value', [0.0, 0.1, 1.0, 7.7])
def test_features_that_say_nothing_give_the_plain_risk(value):
  """Weights differ by rounding alone, which must not be divided by."""
  seen = make_observed()
  constant = np.full((30, FEATURES), value)
  held = seen.held._replace(features=constant[:20])
  seen = seen._replace(features=constant, held=held)
  np.testing.assert_allclose(
    CRITERIA['dev_risk'].measure(seen),
    1 - CRITERIA['source_accuracy'].measure(seen),
    rtol=1e-6,
  )


GOOD = make_probabilities()
BAD = {
  'empty': (np.zeros((0, CLASSES)), 'at least one row'),
  'a vector': (GOOD[0], r'shape \[N, F\]'),
  'three axes': (GOOD[None], r'shape \[N, F\]'),
  'text': (np.array([['a', 'b']]), 'numbers of shape'),
  'NaN': (np.where(GOOD > 0.5, np.nan, GOOD), 'not finite'),
  'infinite': (np.where(GOOD > 0.5, np.inf, GOOD), 'not finite'),
}
BAD_PROBABILITIES = BAD | {
  'logits': (GOOD * 3, 'add to 1'),
  'negative': (np.array([[-0.5, 1.5]]), 'add to 1'),
  'one class': (np.ones((5, 1)), 'at least 2 classes'),
}


@pytest.mark.parametrize('kind', BAD_PROBABILITIES)
@pytest.mark.parametrize(
  'measure',
  [
    certainty.mean_entropy,
    certainty.information,
    certainty.nuclear_norm,
    certainty.has_collapsed,
    lambda x: sources.source_accuracy(Held(x, np.zeros(len(x), int), x)),
  ],
)
def test_bad_predictions_are_refused(measure, kind):
  wrong, message = BAD_PROBABILITIES[kind]
  with pytest.raises(ValueError, match=message):
    measure(wrong)


@pytest.mark.parametrize('kind', BAD)
@pytest.mark.parametrize(
  'measure',
  [
    density.neighbourhood_density,
    lambda x: sources.importance_weights(x, GOOD),
    lambda x: sources.importance_weights(GOOD, x),
  ],
)
def test_bad_rows_are_refused(measure, kind):
  wrong, message = BAD[kind]
  with pytest.raises(ValueError, match=message):
    measure(wrong)


@pytest.mark.parametrize(
  ('call', 'message'),
  [
    (lambda: density.neighbourhood_density(GOOD[:1]), 'at least 2'),
    (lambda: density.neighbourhood_density(0 * GOOD), 'all zeros'),
    (lambda: density.neighbourhood_density(GOOD, 0), 'temperature = 0'),
    (lambda: sources.importance_weights(GOOD, GOOD[:, :2]), 'as many columns'),
    (lambda: sources.importance_weights(GOOD, GOOD, 0), 'ridge = 0'),
    (lambda: accuracy_of(np.zeros(29, int)), 'one whole number'),
    (lambda: accuracy_of(np.zeros(30)), 'one whole number'),
    (lambda: accuracy_of(np.full(30, CLASSES)), r'within 0\.\.3'),
    (lambda: accuracy_of(np.full(30, -1)), r'within 0\.\.3'),
    (
      lambda: sources.weighted_accuracy(
        Held(GOOD, np.zeros(30, int), GOOD), np.ones(9)
      ),
      r'weights of shape \(9,\) for 30 predictions',
    ),
  ],
)
def test_other_bad_input_is_refused(call, message):
  with pytest.raises(ValueError, match=message):
    call()


def accuracy_of(labels):
  return sources.source_accuracy(Held(GOOD, labels, GOOD))
