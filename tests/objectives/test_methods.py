"""The other methods: twins, limits, and what none of them may see."""

import copy

import closeness
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny
import twins

from moda_jax.objectives import METHODS, source_sets
from moda_jax.objectives.alignment import mada

STEP = 1e-6


@pytest.fixture(autouse=True)
def float64():
  with jax.enable_x64(True):
    yield


def start(name, sources=3, **values):
  method, batch = (
    tiny.make_method(name, sources, **values),
    tiny.make_batch(sources),
  )
  params, state = tiny.init(method, batch)
  return method, batch, jax.tree.map(np.array, params), state


def assert_slopes(function, params, grads, part, count=6, sign=1):
  """Compares entries of the gradient with differences of a NumPy function."""
  rng = np.random.default_rng(0)
  paths = jax.tree_util.tree_leaves_with_path(params[part])
  for _ in range(count):
    path, leaf = paths[rng.integers(len(paths))]
    index = tuple(rng.integers(n) for n in leaf.shape)
    values = []
    for step in (STEP, -STEP):
      moved = copy.deepcopy(params)
      entry = moved[part]
      for key in path:
        entry = entry[key.key]
      entry[index] += step
      values.append(function(moved))
    found = grads[part]
    for key in path:
      found = found[key.key]
    slope = sign * (values[0] - values[1]) / (2 * STEP)
    atol = closeness.slope_tolerance(STEP, values[0])
    np.testing.assert_allclose(found[index], slope, 1e-9, atol)


def test_mada_is_its_twin(monkeypatch):
  monkeypatch.setattr(mada, 'HIDDEN', 7)
  method, batch, params, state = start('mada')
  method.total_steps = 10
  grad_fn = jax.jit(jax.value_and_grad(method.loss_and_aux, has_aux=True))
  (loss, _), grads = grad_fn(params, state, batch, jax.random.key(0), 4)
  task, game, weights = twins.mada(params, batch, 0.4)
  np.testing.assert_allclose(loss, task + game)

  def objective(params):  # what g and h minimise and the D_k maximise
    task, game, _ = twins.mada(params, batch, 0.4, weights)
    return task - game

  assert_slopes(objective, params, grads, 'extractor')
  assert_slopes(objective, params, grads, 'classifier')
  assert_slopes(objective, params, grads, 'discriminator', sign=-1)


@pytest.mark.parametrize('sources', [1, 2, 3])
def test_moe_is_its_twin(sources):
  method, batch, params, state = start('moe', sources)
  loss, _, grads = tiny.loss_and_grads(method, params, state, batch)
  means = twins.class_means(params, batch)

  def objective(params):
    return twins.moe(params, batch, method.options, means)

  np.testing.assert_allclose(loss, objective(params), rtol=1e-9)
  for part in ('extractor', 'classifier', 'metric'):
    assert_slopes(objective, params, grads, part)


def test_moe_predicts_with_means_over_all_source_examples():
  method, batch, params, state = start('moe')
  mask = np.ones((3, 8), bool)
  mask[1, 5:] = False  # a shorter source, padded
  shown = batch['source'] | {'mask': mask}
  for first, part in ((True, slice(0, 3)), (False, slice(3, 8))):
    piece = {'source': {k: v[:, part] for k, v in shown.items()}}
    state = method.observe_sources(params, state, piece, first)
  real = [
    [x[kept] for x, kept in zip(batch['source'][k], mask, strict=True)]
    for k in ('weak', 'label')
  ]
  means = twins.class_means(
    params, {'source': dict(zip(('weak', 'label'), real, strict=True))}
  )
  x = batch['target']['weak']
  expected = [twins.moe_predict(params, means, row) for row in x]
  np.testing.assert_allclose(method.predict(params, state, x), expected)


def test_moe_remembers_a_class_that_a_batch_lacks():
  method, batch, params, state = start('moe')
  _, (_, state) = method.loss_and_aux(
    params, state, batch, jax.random.key(0), 0
  )
  before = state['batch_sets']['mean']
  batch['source']['label'] = np.zeros((3, 8), int)
  _, (_, state) = method.loss_and_aux(
    params, state, batch, jax.random.key(0), 0
  )
  np.testing.assert_array_equal(
    state['batch_sets']['mean'][:, 1:], before[:, 1:]
  )
  assert (state['batch_sets']['mean'][:, 0] != before[:, 0]).any()


@pytest.mark.parametrize('sources', [1, 2, 3])
def test_m3sda_is_its_twin(sources):
  method, batch, params, state = start('m3sda', sources)
  loss, _, grads = tiny.loss_and_grads(method, params, state, batch)

  def objective(params):
    return twins.m3sda(params, batch, method.options.m3sda_weight)

  np.testing.assert_allclose(loss, objective(params))
  for part in ('extractor', 'classifier'):
    assert_slopes(objective, params, grads, part)


def test_m3sda_has_a_gradient_where_domains_coincide():
  method, batch, params, state = start('m3sda')
  batch['source']['weak'][:] = batch['target']['weak']
  _, _, grads = tiny.loss_and_grads(method, params, state, batch)
  assert all(np.isfinite(g).all() for g in jax.tree.leaves(grads))


def test_m3sda_predicts_the_plain_mean_of_its_softmaxes():
  method, batch, params, state = start('m3sda')
  x = batch['target']['weak']
  for row, found in zip(x, method.predict(params, state, x), strict=True):
    z = twins.encode(params, row)
    each = [
      twins.softmax(twins.dense(twins.head(params['classifier'], j), z))
      for j in range(3)
    ]
    np.testing.assert_allclose(found, np.mean(each, axis=0))


def test_source_only_is_the_mean_of_the_class_losses():
  method, batch, params, state = start('source_only')
  loss, _, grads = tiny.loss_and_grads(method, params, state, batch)

  def objective(params):
    source = batch['source']
    return twins.mean_class_loss(params, source['weak'], source['label'])

  np.testing.assert_allclose(loss, objective(params))
  for part in ('extractor', 'classifier'):
    assert_slopes(objective, params, grads, part)


def test_moe_gives_no_weight_for_a_single_class():
  """A source that has nothing to tell apart is not the surest of all."""
  method, batch, params, state = start('moe')
  labels = batch['source']['label'].copy()
  labels[0] = 1
  shown = {'weak': batch['source']['weak'], 'label': labels}
  shown['mask'] = np.ones_like(labels, bool)
  state = method.observe_sources(params, state, {'source': shown}, True)
  z, _ = method.apply(
    'extractor', params, state, batch['target']['weak'], train=False
  )
  scores = source_sets.confidence(
    metric=params['metric'], sets=state['all_sets'], encodings=z[None]
  )
  assert np.all(scores[0] == 0)
  assert np.all(scores[1:] >= 0)
  assert scores[1:].max() < 1e6


@pytest.mark.slow
@pytest.mark.parametrize(
  ('name', 'single'), [('dann_ss', 'dann_ms'), ('mada_ss', 'mada')]
)
def test_copies_are_independent_runs(name, single):
  method, batch, params, state = start(name)
  _, metrics, grads = tiny.loss_and_grads(method, params, state, batch)
  predicted = method.predict(params, state, batch['target']['weak'])
  alone = tiny.make_method(single, sources=1)
  for j, source in enumerate('abc'):
    own = jax.tree.map(lambda x, j=j: x[j], params)
    own_batch = batch | {
      'source': {k: v[j : j + 1] for k, v in batch['source'].items()}
    }
    loss, _, own_grads = tiny.loss_and_grads(alone, own, state, own_batch)
    np.testing.assert_allclose(metrics[f'loss/{source}'], loss)
    assert_close(jax.tree.map(lambda x, j=j: x[j], grads), own_grads)
    np.testing.assert_allclose(
      predicted[j], alone.predict(own, state, batch['target']['weak'])
    )


def network_grads(name, params, batch, state, **values):
  method = tiny.make_method(name, sources=1, **values)
  loss, _, grads = tiny.loss_and_grads(method, params, state, batch)
  return loss, {k: grads[k] for k in ('extractor', 'classifier')}, grads


def test_with_one_source_moda_is_dann_plus_a_constant_and_mdan_is_dann():
  _, batch, params, state = start('moda', sources=1)
  shared = {k: v for k, v in params.items() if k != 'beta'}
  dann, dann_grads, whole = network_grads('dann_ms', shared, batch, state)
  moda, moda_grads, _ = network_grads('moda', params, batch, state)
  stacked = jax.tree.map(lambda x: x[None], shared['discriminator'])
  mdan_params = shared | {'discriminator': stacked}
  np.testing.assert_allclose(moda, dann + 0.2)
  for name in ('mdan', 'mdan_max'):
    mdan, mdan_grads, mdan_whole = network_grads(
      name, mdan_params, batch, state
    )
    np.testing.assert_allclose(mdan, dann)
    assert_close(
      (mdan_grads, jax.tree.map(lambda x: x[0], mdan_whole['discriminator'])),
      (dann_grads, whole['discriminator']),
    )
  assert_close(moda_grads, dann_grads)


def assert_close(one, other):
  closeness.assert_close(one, other, depth=2 * tiny.LAYERS)


def test_mdan_is_stable_and_between_the_largest_and_its_bound():
  soft, hard = (
    tiny.make_method(name).weights.maximum for name in ('mdan', 'mdan_max')
  )
  losses = jnp.array([300.0, 299.9, 1.0])
  assert hard(losses) == 300
  bound = 300 + np.log(3) / 10
  assert 300 < soft(losses) < bound


def test_mdan_fm_without_consistency_is_mdan():
  method, batch, params, state = start('mdan')
  loss, _, grads = tiny.loss_and_grads(method, params, state, batch)
  other = tiny.make_method('mdan_fm', mu_c=0.0)
  other_loss, _, other_grads = tiny.loss_and_grads(other, params, state, batch)
  np.testing.assert_allclose(loss, other_loss)
  assert_close(grads, other_grads)


def test_mdan_fm_adds_the_consistency_of_fm():
  """μ_c times what FM adds to the mean class loss, on the same networks."""
  values = {'mu_c': 0.7, 'tau': 0.34}
  _, batch, params, state = start('mdan_fm')
  shared = {k: params[k] for k in ('extractor', 'classifier')}

  def run(name, params):
    method = tiny.make_method(name, **values)
    loss, metrics, grads = tiny.loss_and_grads(method, params, state, batch)
    return loss, metrics, {k: grads[k] for k in shared}

  fm, metrics, fm_grads = run('fm', shared)
  plain, _, plain_grads = run('source_only', shared)
  mdan, _, mdan_grads = run('mdan', params)
  mdan_fm, _, mdan_fm_grads = run('mdan_fm', params)
  assert metrics['confident'] > 0
  np.testing.assert_allclose(mdan_fm - mdan, fm - plain)
  assert_close(
    jax.tree.map(np.subtract, mdan_fm_grads, mdan_grads),
    jax.tree.map(np.subtract, fm_grads, plain_grads),
  )


@pytest.mark.parametrize('name', tiny.EVERY_METHOD)
def test_the_program_does_not_grow_with_the_sources(name):
  """But for naming metrics; so compiling takes as long for 10 as for 2."""

  def count(sources):
    method, batch, params, state = start(name, sources)
    program = jax.make_jaxpr(method.loss_and_aux)(
      params, state, batch, jax.random.key(0), 0
    )
    names = ('slice', 'squeeze', 'dynamic_slice', 'gather', 'lt', 'add')
    return sum(eqn.primitive.name not in names for eqn in program.jaxpr.eqns)

  assert count(10) <= count(2) + 3


@pytest.mark.parametrize('name', tiny.EVERY_METHOD)
def test_target_labels_reach_supervised_alone(name):
  """The loss and its gradients do not change with the target's labels."""
  method, batch, params, state = start(name)
  changed = batch | {
    'target': batch['target'] | {'label': (batch['target']['label'] + 1) % 3}
  }
  results = [
    tiny.loss_and_grads(method, params, state, b) for b in (batch, changed)
  ]
  same = all(
    np.array_equal(a, b)
    for a, b in zip(*map(jax.tree.leaves, results), strict=True)
  )
  assert same == (name != 'supervised')
  assert METHODS[name].batch_spec.target_labels == (name == 'supervised')


@pytest.mark.parametrize('name', tiny.EVERY_METHOD)
@pytest.mark.parametrize(
  'sources', [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 10))]
)
def test_any_number_of_sources(name, sources):
  method, batch, params, state = start(name, sources)
  loss, metrics, grads = tiny.loss_and_grads(method, params, state, batch)
  assert np.isfinite(loss)
  assert all(np.isfinite(x).all() for x in jax.tree.leaves((metrics, grads)))
  x = batch['target']['weak']
  probabilities = method.predict(params, state, x)
  shape = (len(x), tiny.CLASSES)
  count = len(method.predictors)
  assert probabilities.shape == ((count, *shape) if count else shape)
  np.testing.assert_allclose(probabilities.sum(axis=-1), 1)
