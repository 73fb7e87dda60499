"""Criteria at evaluations: of which examples, on how many devices."""

import jax
import looped_criteria as twins
import numpy as np
import pytest
import tiny
from comparison import logged

from moda_jax.selection.criteria import CRITERIA
from moda_jax.selection.observed import Held
from moda_jax.training import devices as devices_lib
from moda_jax.training import judging, several_seeds
from moda_jax.training.evaluation import Evaluator
from moda_jax.training.experiment import Experiment
from moda_jax.training.train_step import as_float

ALL = {*(f'selection/{name}' for name in CRITERIA)} | {
  'selection/effective_classes'
}
FREE = ALL - {f'selection/{n}' for n, c in CRITERIA.items() if c.needs_held}


def make_state(experiment, seed=0):
  """Returns a state whose predictions say something, in float64."""
  rng = np.random.default_rng(seed)
  draw = lambda x: np.asarray(x) + 0.3 * rng.normal(size=np.shape(x))  # noqa: E731
  state = jax.device_get(experiment.initial_state)
  return state.replace(params=jax.tree.map(draw, state.params))


def judge(devices=1, data=None, **values):
  with jax.enable_x64(True):
    config = tiny.make_run_config(**values)
    experiment = Experiment(config, data or tiny.make_domains(), devices)
    state = devices_lib.replicate(make_state(experiment), devices)
    state = experiment.evaluator.observe_sources(state)
    return experiment, state, experiment.evaluator.judge(state)


@pytest.fixture(scope='module')
def held():
  return judge(holdout=0.25)


def test_criteria_are_those_of_the_predictions(held):
  experiment, state, found = held
  assert set(found) == ALL
  method, domains = experiment.method, experiment.domains

  def look(domain):
    with jax.enable_x64(True):
      x = as_float(domain.inputs)
      given = (state.params, state.method_state, x)
      return [np.asarray(f(*given)) for f in (method.predict, method.extract)]

  predicted, features = look(domains.target)
  assert len(predicted) == 32  # all of the target, not its test examples
  held = [look(domain) for domain in domains.held]
  labels = np.concatenate([d.labels for d in domains.held])
  probabilities = np.concatenate([p for p, _ in held])
  right = probabilities.argmax(axis=1) == labels
  weights = twins.importance_weights(
    np.concatenate([f for _, f in held]), features
  )
  expected = {
    'entropy': twins.mean_entropy(predicted),
    'information': twins.information(predicted),
    'nuclear_norm': twins.nuclear_norm(predicted),
    'density': twins.density(predicted),
    'source_accuracy': right.mean(),
    'weighted_accuracy': np.dot(weights, right) / np.sum(weights),
    'dev_risk': twins.control_variate(weights, [float(not r) for r in right]),
    'effective_classes': np.exp(twins.entropy(twins.mean(predicted))),
  }
  for name, value in expected.items():
    np.testing.assert_allclose(
      found[judging.metric(name)], value, rtol=1e-4, err_msg=name
    )


def test_eight_devices_say_what_one_says(held):
  found = judge(8, holdout=0.25)[2]
  assert set(found) == ALL
  for name, value in held[2].items():
    # Where a solver stops, not rounding alone.
    weighted = name in ('selection/weighted_accuracy', 'selection/dev_risk')
    rtol = 1e-4 if weighted else 1e-6
    np.testing.assert_allclose(found[name], value, rtol=rtol, err_msg=name)


def test_without_labels_of_the_target_the_same_is_said(held):
  data = tiny.make_domains()
  bare = data.target._replace(labels=None)
  data = data._replace(target=bare, test=bare)
  experiment, state, found = judge(
    data=data, holdout=0.25, evaluate_on='target'
  )
  assert found == held[2]
  assert experiment.evaluator.accuracies(state) == {}


def test_at_most_so_many_examples_are_judged(monkeypatch):
  domain = tiny.make_domains().target
  few, all_of_it = judging.draw(domain, 5), judging.draw(domain, 100)
  assert len(set(few)) == 5
  assert list(few) == sorted(few)
  assert list(all_of_it) == list(range(domain.size))
  np.testing.assert_array_equal(few, judging.draw(domain, 5))
  seen = []
  monkeypatch.setattr(judging, 'JUDGED', 6)
  monkeypatch.setattr(judging, 'judge', lambda x: seen.append(x) or {})
  judge(holdout=0.25)
  (observed,) = seen
  assert len(observed.held.labels) == 6


def test_a_method_of_several_predictions_is_judged_by_their_mean():
  experiment, state, found = judge(method='dann_ss')
  assert set(found) == FREE
  test = experiment.domains.target.inputs
  with jax.enable_x64(True):
    mean = np.asarray(experiment.model.predict_all(state, test))
  np.testing.assert_allclose(
    found['selection/entropy'], twins.mean_entropy(mean), rtol=1e-5
  )


def test_several_seeds_are_judged_each_and_on_average():
  experiment, state, found = judge(seeds=2, method='source_only')
  assert len(found) == 3 * len(FREE)
  evaluator = experiment.evaluator
  for name in FREE:
    each = [found[f'{name}/seed_{seed}'] for seed in (0, 1)]
    np.testing.assert_allclose(found[name], np.mean(each), rtol=1e-12)
  with jax.enable_x64(True):
    single = several_seeds.take_seed(state, 1)
    own = list(evaluator._evaluators.values())[1].judge(single)
  assert own['selection/entropy'] == found['selection/entropy/seed_1']


def test_a_criterion_that_cannot_be_computed_is_left_out(caplog):
  observed = judging.Observed(np.full((1, 3), 1 / 3))
  found = judging.judge(observed)
  assert set(found) == FREE - {'selection/density'}
  assert 'the criterion density is left out' in caplog.text


def test_predictions_that_are_not_finite_end_nothing(caplog):
  """Though those for source examples are."""
  few, features = np.full((4, 3), 1 / 3), np.ones((4, 2))
  held = Held(few, np.zeros(4, int), features)
  seen = judging.Observed(np.full((4, 3), np.nan), features, held)
  assert judging.judge(seen) == {}
  assert 'the model is not judged: predictions: some values' in caplog.text


def test_runs_log_criteria_at_evaluations_alone(tmp_path, caplog):
  caplog.set_level('INFO')
  tiny.train(tmp_path, log_every=1, eval_every=3, method='source_only')
  lines = logged(tmp_path)
  judged = [set(line) >= FREE for line in lines]
  assert judged == [False, False, True, False, False, True]
  assert 'holdout=0.1 keeps a tenth of every source' in caplog.text


def test_judging_changes_nothing_that_is_trained(tmp_path, monkeypatch):
  first = tiny.train(tmp_path / 'a', method='source_only')
  monkeypatch.setattr(Evaluator, 'judge', lambda self, state: {})
  second = tiny.train(tmp_path / 'b', method='source_only')
  jax.tree.map(
    np.testing.assert_array_equal,
    jax.device_get(first.state),
    jax.device_get(second.state),
  )
