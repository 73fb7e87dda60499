"""The criteria against twins in loops, at their extremes, on bad input."""

import math
import tracemalloc

import looped_criteria as twins
import numpy as np
import pytest

from moda_jax.selection import (
  certainty,
  clusters,
  density,
  mixtures,
  sources,
)
from moda_jax.selection.criteria import CRITERIA, weigh
from moda_jax.selection.observed import Held, Mixed, Observed
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
    Mixed(
      make_probabilities(held, seed + 2),
      rng.integers(0, CLASSES, held),
      rng.integers(0, CLASSES, held),
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
  'class_ami': lambda seen: twins.class_ami(seen.probabilities, seen.features),
  'mixval': lambda seen: twins.mixval(seen.mixed),
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
  truth = rng.integers(0, CLASSES, 120)
  noise = 3 * rng.normal(size=(120, CLASSES))  # it is sure where it is wrong
  logits = sharpness * np.eye(CLASSES)[truth] + noise
  p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
  target, held, mixed = slice(0, 60), slice(60, 90), slice(90, 120)
  return Observed(
    p[target],
    logits[target],
    Held(p[held], truth[held], logits[held]),
    Mixed(p[mixed], truth[mixed], rng.integers(0, CLASSES, 30)),
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
  mixed = Mixed(*(x[other] for x in seen.mixed))
  shuffled = Observed(
    seen.probabilities[order], seen.features[order], held, mixed
  )
  measure = CRITERIA[name].measure
  rtol = TOLERANCE.get(name, 1e-11)
  np.testing.assert_allclose(measure(shuffled), measure(seen), rtol=rtol)


@pytest.mark.parametrize('name', CRITERIA)
def test_what_a_criterion_needs_is_asked_for(name):
  criterion, seen = CRITERIA[name], make_observed()
  needed = {
    'held': (criterion.needs_held, 'kept out of training are needed'),
    'features': (criterion.needs_features, 'features of the target are needed'),
    'mixed': (criterion.needs_mixed, 'mixtures of target examples are needed'),
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


def test_classes_that_are_the_clusters_are_the_best():
  rng = np.random.default_rng(0)
  truth = np.repeat(np.arange(CLASSES), 10)
  x = 5 * np.eye(CLASSES)[truth] + 0.1 * rng.normal(size=(40, CLASSES))
  np.testing.assert_allclose(clusters.class_ami(np.eye(CLASSES)[truth], x), 1)
  halves = np.eye(CLASSES)[truth // 2]  # of two clusters each: I = ln 2
  by_chance = clusters.expected_information([20, 20], [10] * 4)
  expected = (math.log(2) - by_chance) / (math.log(8) / 2 - by_chance)
  np.testing.assert_allclose(clusters.class_ami(halves, x), expected)
  one = np.eye(CLASSES)[0 * truth]
  assert clusters.class_ami(one, x) == 0


@pytest.mark.parametrize('features', [2, 200])
def test_clusters_are_not_found_where_only_the_predictions_are(features):
  """Few examples of each class, and far more features than these."""
  rng = np.random.default_rng(0)
  predicted = np.eye(CLASSES)[np.repeat(np.arange(CLASSES), 10)]
  found = [
    clusters.class_ami(predicted, rng.normal(size=(40, features)))
    for _ in range(10)
  ]
  assert abs(np.mean(found)) < 0.05


def test_more_classes_than_examples_and_examples_that_are_alike():
  classes = np.eye(CLASSES)[[0, 1, 0]]
  np.testing.assert_allclose(
    clusters.class_ami(classes, np.array([[0.0], [9], [0]])), 1
  )
  assert clusters.class_ami(classes, np.ones((3, 2))) == 0


def test_chance_gives_no_information_on_average():
  rng = np.random.default_rng(0)
  found = [
    clusters.adjusted_information(*rng.integers(0, 7, (2, 60)))
    for _ in range(200)
  ]
  assert abs(np.mean(found)) < 0.01
  every = np.arange(9)
  assert clusters.adjusted_information(every, every) == 0


@pytest.mark.parametrize('seed', range(5))
def test_adjusted_information_is_that_of_scikit_learn(seed):
  metrics = pytest.importorskip('sklearn.metrics')
  rng = np.random.default_rng(seed)
  u = rng.integers(0, 6, 300)
  v = np.where(rng.random(300) < 0.5, u, rng.integers(0, 9, 300))
  np.testing.assert_allclose(
    clusters.adjusted_information(u, v),
    metrics.adjusted_mutual_info_score(u, v),
    rtol=1e-9,
  )


@pytest.mark.parametrize('most', [4, 1000])
def test_pairs_are_of_one_class_and_of_two(most):
  classes = np.random.default_rng(0).integers(0, 5, 40)
  classes[7] = 9  # alone in its class
  first, second = mixtures.draw_pairs(classes, most)
  same = classes[first] == classes[second]
  for kind in (same, ~same):
    assert len(set(first[kind])) == kind.sum() <= most
    assert len(set(second[kind])) == kind.sum()
  assert (first != second).all()
  # The last one of each of five classes and the one of the sixth have none.
  assert same.sum() == min(most, 40 - 6)
  assert (~same).sum() == most or most > (~same).sum() > 20
  again = mixtures.draw_pairs(classes, most)
  np.testing.assert_array_equal(np.stack(again), np.stack([first, second]))


def test_pairs_of_a_single_class_are_of_one_kind():
  first, second = mixtures.draw_pairs(np.zeros(6, int))
  assert len(first) == 6
  assert (first != second).all()
  assert not len(mixtures.draw_pairs(np.zeros(1, int)).first)


def test_mixtures_keep_their_type():
  a, b = np.array([[0, 100, 255]]), np.array([[255, 50, 255]])
  found = mixtures.mix(a.astype(np.uint8), b.astype(np.uint8))
  assert found.dtype == np.uint8
  np.testing.assert_array_equal(found, [[115, 78, 255]])
  rows = mixtures.mix(a.astype(np.float32), b.astype(np.float32))
  assert rows.dtype == np.float32
  np.testing.assert_allclose(rows, 0.55 * a + 0.45 * b, rtol=1e-6)


def test_a_model_that_follows_the_larger_part_is_the_best():
  labels, others = np.array([0, 1, 2, 3]), np.array([0, 1, 0, 1])
  assert mixtures.mixture_accuracy(Mixed(np.eye(4), labels, others)) == 1
  swapped = Mixed(np.eye(4)[others], labels, others)
  assert mixtures.mixture_accuracy(swapped) == 0.5


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
    (lambda: clusters.class_ami(GOOD, GOOD[:9]), '9 rows of features for 30'),
    (
      lambda: mix_labels(np.ones(30, int), np.ones(30, int)),
      'of examples with',
    ),
    (lambda: mix_labels(np.ones(30, int), np.zeros(30, int)), 'same predicted'),
    (lambda: mix_labels(np.ones(9, int), np.zeros(9, int)), 'one whole number'),
  ],
)
def test_other_bad_input_is_refused(call, message):
  with pytest.raises(ValueError, match=message):
    call()


def mix_labels(labels, others):
  return mixtures.mixture_accuracy(Mixed(GOOD, labels, others))


def accuracy_of(labels):
  return sources.source_accuracy(Held(GOOD, labels, GOOD))
