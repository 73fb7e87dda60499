"""Methods composed of parts: all that go together train, others say why not."""

import itertools

import closeness
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny

from moda_jax.errors import UserError
from moda_jax.objectives import METHODS, PARTS, find_method, name_method
from moda_jax.objectives.composition import Composition, compose
from moda_jax.objectives.weights import WEIGHTS
from moda_jax.training import options

KINDS = [
  [*WEIGHTS, 'floored', 'projected+floored', 'smooth_max+averaged+floored'],
  PARTS['alignment'],
  PARTS['target_term'],
  PARTS['predictor'],
]


def goes_together(names):
  """Says whether these parts can be composed: DAEL's term needs experts."""
  return names[2:] != ('dael', 'shared')


EVERY = [names for names in itertools.product(*KINDS) if goes_together(names)]
# Every part at least once.
SAMPLE = [
  tuple(list(names)[i % len(names)] for names in KINDS)
  for i in range(len(KINDS[0]))
]
SAMPLE = [
  pytest.param(names, marks=[pytest.mark.slow] if i > 3 else [])
  for i, names in enumerate(filter(goes_together, SAMPLE))
]


@pytest.fixture(autouse=True)
def float64():
  with jax.enable_x64(True):
    yield


def make(*names, sources=3, **values):
  """Returns the method of these parts, with the values of `tiny`."""
  return tiny.make_composition(names, sources, **values)


def every_pair():
  """Returns compositions that have every two parts of two kinds together."""
  chosen, missing = [], {p for names in EVERY for p in pairs(names)}
  while missing:
    best = max(EVERY, key=lambda names: len(missing & pairs(names)))
    chosen.append(best)
    missing -= pairs(best)
  return chosen


def pairs(names):
  return set(itertools.combinations(enumerate(names), 2))


@pytest.mark.slow
def test_every_two_parts_trace_together():
  """Loss, gradients and prediction have their shapes, without compiling."""
  batch = tiny.make_batch(2, size=4)
  x = batch['target']['weak']
  for names in every_pair():
    method = make(*names, sources=2)
    params, state = jax.eval_shape(method.init, jax.random.key(0), x)
    step = jax.value_and_grad(method.loss_and_aux, has_aux=True)
    (loss, (_, new_state)), _ = jax.eval_shape(
      step, params, state, batch, jax.random.key(0), 0
    )
    assert loss.shape == ()
    before, after = (jax.tree.map(jnp.shape, t) for t in (state, new_state))
    assert before == after
    predicted = jax.eval_shape(method.predict, params, state, x)
    assert predicted.shape == (4, tiny.CLASSES)


@pytest.mark.parametrize('names', SAMPLE, ids=','.join)
def test_compositions_have_finite_losses_and_gradients(names):
  method, batch = make(*names), tiny.make_batch()
  params, state = tiny.init(method, batch)
  loss, metrics, grads = tiny.loss_and_grads(method, params, state, batch)
  found = jax.tree.leaves((loss, metrics, grads))
  assert all(np.isfinite(x).all() for x in found)
  predicted = method.predict(params, state, batch['target']['weak'])
  np.testing.assert_allclose(predicted.sum(axis=-1), 1)


def test_experts_that_are_alike_are_one_classifier():
  """With equal heads the mean of predictions is that of each."""
  batch = tiny.make_batch()
  shared = make('softmax', 'dann', 'fixmatch', 'shared')
  experts = make('softmax', 'dann', 'fixmatch', 'experts')
  params, state = tiny.init(shared, batch)
  head = jax.tree.map(lambda x: jnp.stack([x] * 3), params['classifier'])
  loss, _, grads = tiny.loss_and_grads(shared, params, state, batch)
  other, _, other_grads = tiny.loss_and_grads(
    experts, params | {'classifier': head}, state, batch
  )
  np.testing.assert_allclose(other, loss)
  grads['classifier'] = other_grads['classifier'] = {}
  closeness.assert_close(other_grads, grads, depth=2 * tiny.LAYERS)


def test_the_sum_is_the_mean_times_the_sources():
  batch = tiny.make_batch()
  mean = make('uniform', 'none', 'none', 'shared')
  total = make('sum', 'none', 'none', 'shared')
  params, state = tiny.init(mean, batch)
  one, _, _ = tiny.loss_and_grads(mean, params, state, batch)
  three, _, _ = tiny.loss_and_grads(total, params, state, batch)
  np.testing.assert_allclose(three, 3 * one)


@pytest.mark.parametrize('weights', ['uniform', 'smooth_max', 'hard_max'])
def test_one_source_alone_is_dann_whatever_combines_it(weights):
  batch = tiny.make_batch(1)
  expected, found = (
    make(name, 'dann', 'none', 'shared', sources=1) for name in ('sum', weights)
  )
  params, state = tiny.init(expected, batch)
  losses = [
    tiny.loss_and_grads(method, params, state, batch)[0]
    for method in (expected, found)
  ]
  np.testing.assert_allclose(*losses)


def objective(**values):
  config = options.base_config()
  config.objective.update(values)
  return config.objective


def test_parts_replace_those_of_a_named_method():
  for name, method in METHODS.items():
    assert find_method(objective(method=name)) is method
    if issubclass(method, Composition):
      parts = method.names._asdict()
      whole = find_method(objective(method='source_only', **parts))
      assert whole is compose(*method.names)
      assert issubclass(method, whole)
  changed = objective(method='moda_fm', target_term='none', weights='darn')
  assert find_method(changed) is compose('darn', 'dann', 'none', 'shared')
  assert name_method(changed) == 'moda_fm,weights=darn,target_term=none'
  assert name_method(objective(method='fm')) == 'fm'


@pytest.mark.parametrize(
  ('weights', 'remedies', 'useless'),
  [
    ('softmax', ['beta_rate', 'weights=softmax+floored'], ['alpha_decay']),
    ('relative', ['mu_s', 'weights=relative+floored'], ['alpha_decay']),
    ('floored', ['alpha_hold', 'alpha_floor'], ['+floored']),
    ('projected', ['alpha_decay', 'mu_s'], ['beta_rate']),
    ('darn', ['darn_gamma', 'weights=darn+floored'], ['beta_rate', 'mu_s']),
  ],
)
def test_collapsed_weights_are_warned_of_with_their_own_remedies(
  weights, remedies, useless
):
  method = make(weights, 'dann', 'fixmatch', 'shared')
  collapsed = {'alpha/a': 0.99, 'alpha/b': 0.01, 'alpha/c': 0.0}
  said = method.find_trouble(collapsed)
  assert 'α of a is 0.990' in said
  assert [text for text in remedies if text not in said] == []
  assert [text for text in useless if text in said] == []
  assert not method.find_trouble(collapsed | {'alpha/a': 0.5, 'alpha/b': 0.5})


def test_weights_that_are_meant_to_be_one_hot_are_not_warned_of():
  method = make('hard_max+floored', 'mdan', 'none', 'shared')
  assert not method.find_trouble({'alpha/a': 1.0, 'alpha/b': 0.0})


@pytest.mark.parametrize(
  ('values', 'reason'),
  [
    ({'method': 'mine'}, "config.objective.method = 'mine' is unknown"),
    ({'weights': 'mine'}, "config.objective.weights = 'mine' is unknown"),
    ({'alignment': 'mine'}, 'allowed are none, dann, mdan'),
    ({'predictor': 'mine'}, 'allowed are shared, experts, taught, moe'),
    (
      {'target_term': 'fixmatch+dael'},
      'needs one classifier per source, .* predictor=experts or taught or moe',
    ),
    ({'target_term': 'mine'}, 'allowed are none, and one or more of fixmatch'),
    ({'target_term': 'none+fixmatch'}, 'none.fixmatch. is unknown'),
    ({'target_term': 'fixmatch+fixmatch'}, 'can be there only once'),
    (
      {'method': 'supervised', 'alignment': 'dann'},
      "alignment = 'dann': 'supervised' is not composed of parts",
    ),
  ],
)
def test_what_cannot_be_composed_is_refused(values, reason):
  with pytest.raises(UserError, match=reason):
    find_method(objective(**values))


@pytest.mark.parametrize(
  ('method', 'weights', 'names'),
  [
    ('moda_fm', 'floored', 'softmax+floored'),
    ('mdan', 'floored', 'smooth_max+floored'),
    ('moda_fm_darn', 'floored', 'darn+floored'),
    ('mdan', 'projected+floored', 'projected+floored'),
  ],
)
def test_a_change_alone_is_of_the_methods_own_weights(method, weights, names):
  found = find_method(objective(method=method, weights=weights))
  assert found.names.weights == names


def test_equal_weights_of_a_method_cannot_be_floored():
  with pytest.raises(UserError, match="'uniform' has equal weights"):
    find_method(objective(method='fm', weights='floored'))


def test_a_part_is_named_by_text():
  given = {**objective(), 'weights': True}
  with pytest.raises(UserError, match=r'weights = True is not allowed; .* str'):
    find_method(given)


@pytest.mark.parametrize(
  ('term', 'threshold'),
  [
    ('fixmatch', 0.8),
    ('mcc+fixmatch', 0.8),
    ('adamatch+fixmatch', 0.8),
    ('adamatch', None),  # relative to what the sources show
    ('dael', None),  # of the surest expert, not of their mean
    ('mcc', None),
  ],
)
def test_the_probability_above_which_a_sample_is_trained_on(term, threshold):
  values = {'tau': 0.8} if 'fixmatch' in term else {}
  method = make('uniform', 'none', term, 'experts', **values)
  assert method.confidence_threshold == threshold
