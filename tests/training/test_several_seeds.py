"""Several seeds side by side: each is what its single run is."""

import functools

import closeness
import jax
import numpy as np
import pytest
import tiny

from moda_jax import report
from moda_jax.errors import Interrupted, UserError
from moda_jax.models import resnet
from moda_jax.training import predictions, several_seeds
from moda_jax.training.experiment import Experiment
from moda_jax.training.run_folder import read_metrics

STEPS = 3
SEEDS = (4, 5)
TOGETHER = {'seed': 4, 'seeds': 2}
assert_near = functools.partial(
  np.testing.assert_allclose, rtol=1e-9, atol=1e-12
)


def take_steps(config, data, devices):
  """Returns the experiment, its state after some steps and their metrics."""
  experiment = Experiment(config, data, devices)
  state = jax.tree.map(tiny.in_float64, experiment.initial_state)
  history = []
  for _, batch in zip(range(STEPS), experiment.make_batches(0), strict=False):
    state, metrics = experiment.train_step(state, batch)
    history.append(jax.device_get(metrics))
  return experiment, state, history


def assert_equal_to_single_runs(make_config, data, devices):
  with jax.enable_x64(True):
    together = take_steps(make_config(**TOGETHER), data, devices)
    evaluator = together[0].evaluator
    accuracies = evaluator.accuracies(evaluator.observe_sources(together[1]))
    for i, seed in enumerate(SEEDS):
      single = take_steps(make_config(seed=seed), data, devices)
      own_state = several_seeds.take_seed(together[1], i)
      own_history = jax.tree.map(lambda x, i=i: x[i], together[2])
      jax.tree.map(assert_near, own_state, single[1])
      jax.tree.map(assert_near, own_history, single[2])
      evaluator = single[0].evaluator
      observed = evaluator.observe_sources(single[1])
      alone = evaluator.accuracies(observed)['target/accuracy']
      assert accuracies[f'target/accuracy/seed_{seed}'] == alone


@pytest.mark.parametrize(
  ('method', 'devices'),
  [
    ('moda_fm', 1),
    pytest.param('dann_ss', 1, marks=pytest.mark.slow),
    pytest.param('moe', 2, marks=pytest.mark.slow),
    pytest.param('moda_fm', 2, marks=pytest.mark.slow),
    pytest.param('dann_ss', 2, marks=pytest.mark.slow),
    pytest.param('moe', 1, marks=pytest.mark.slow),
  ],
)
def test_every_seed_is_its_single_run_in_float64(method, devices):
  make_config = functools.partial(
    tiny.make_run_config, method=method, tau=0.4, moe_alignment=0.3
  )
  assert_equal_to_single_runs(make_config, tiny.make_domains(), devices)


@pytest.mark.slow
@pytest.mark.parametrize(
  'devices', [1, pytest.param(2, marks=pytest.mark.slow)]
)
def test_every_seed_drops_what_its_single_run_drops(devices):
  make_config = functools.partial(
    tiny.make_run_config, network='reviews', width=0.05, tau=0.3
  )
  assert_equal_to_single_runs(make_config, tiny.make_sparse_domains(), devices)


@pytest.mark.slow
def test_every_seed_keeps_its_own_batch_statistics(monkeypatch):
  monkeypatch.setattr(resnet, 'BLOCKS', (1, 0, 0, 0))  # quick to compile
  make_config = functools.partial(
    tiny.make_run_config, network='resnet50', width=1 / 32, method='moda'
  )
  assert_equal_to_single_runs(make_config, tiny.make_domains(), devices=1)


@pytest.fixture
def files_config(tmp_path):
  """Makes configs that draw 10 of 99 images; the rest are the test set.

  Labels are random, so that other test sets give other accuracies.
  """
  data, rng = tiny.make_domains((99,) * 5), np.random.default_rng(0)
  for domain in (*data.sources, data.target):
    np.savez(
      tmp_path / f'{domain.name}.npz',
      images=domain.inputs,
      labels=rng.permutation(domain.labels),
      classes=domain.classes,
    )

  def make(**values):
    config = tiny.make_run_config(samples=10, evaluate_on='undrawn', **values)
    for name in config.data.datasets:
      config.data.datasets[name] = f'npz:{tmp_path / name}.npz'
    return config

  return make


@pytest.mark.slow
@pytest.mark.parametrize(
  'method', ['moda', pytest.param('moe', marks=pytest.mark.slow)]
)
def test_every_seed_has_its_own_draw_and_test_set(method, files_config):
  make_config = functools.partial(files_config, method=method)
  assert_equal_to_single_runs(make_config, None, devices=1)


def test_the_files_are_read_once(files_config, monkeypatch):
  from moda_jax.data import load

  read = []
  original = load.FILE_READERS['npz']

  def count(name, *args):
    read.append(name)
    return original(name, *args)

  monkeypatch.setitem(load.FILE_READERS, 'npz', count)
  Experiment(files_config(**TOGETHER), devices=1)
  assert read == ['a', 'b', 'c', 't']


def run(workdir, **values):
  return tiny.train(workdir, **TOGETHER | values)


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
  """Returns a run that was never interrupted."""
  workdir = tmp_path_factory.mktemp('whole')
  return run(workdir), workdir


def test_accuracy_is_the_mean_and_has_a_deviation(whole, caplog):
  outcome, workdir = whole
  last = read_metrics(workdir)[-1]
  each = [last[f'target/accuracy/seed_{seed}'] for seed in SEEDS]
  assert outcome.by_seed == dict(zip(SEEDS, each, strict=True))
  assert outcome.accuracy == last['target/accuracy'] == np.mean(each)
  # Of two, the sample's deviation is their distance over the root of two.
  distance = abs(each[0] - each[1])
  np.testing.assert_allclose(outcome.deviation, distance / 2**0.5)
  assert outcome.deviation == last['target/accuracy_sd']
  with caplog.at_level('INFO'):
    run(workdir)
  shown = f'{100 * np.mean(each):.2f} ± {100 * outcome.deviation:.2f} %'
  assert f'target accuracy {shown} at the last step' in caplog.text


@pytest.mark.slow
def test_logged_metrics_are_means_over_the_seeds(whole, tmp_path):
  keys = ('loss', 'class/a', 'alpha/b', 'confident')
  logged = []
  for seed in SEEDS:
    run(tmp_path / str(seed), seed=seed, seeds=1)
    lines = read_metrics(tmp_path / str(seed))
    logged.append([[line[key] for key in keys] for line in lines])
  found = [[line[key] for key in keys] for line in read_metrics(whole[1])]
  rtol = closeness.tolerance(np.float32, 2 * tiny.LAYERS)
  np.testing.assert_allclose(found, np.mean(logged, axis=0), rtol)


def test_one_seed_logs_nothing_of_seeds(tmp_path):
  outcome = run(tmp_path, seeds=1)
  assert (outcome.by_seed, outcome.deviation) == ({}, None)
  assert not [
    k for k in read_metrics(tmp_path)[-1] if 'seed' in k or '_sd' in k
  ]


@pytest.mark.slow
def test_an_interrupted_run_goes_on_to_the_same_bits(
  whole, tmp_path, monkeypatch
):
  original = Experiment.make_batches

  def make_batches(self, start):
    for i, batch in enumerate(original(self, start)):
      if i == 3:
        raise Interrupted('in the fourth step, after a checkpoint of two')
      yield batch

  with monkeypatch.context() as patch:
    patch.setattr(Experiment, 'make_batches', make_batches)
    with pytest.raises(Interrupted):
      run(tmp_path)
  again = run(tmp_path)
  jax.tree.map(
    np.testing.assert_array_equal,
    jax.device_get(again.state),
    jax.device_get(whole[0].state),
  )
  assert again.by_seed == whole[0].by_seed


@pytest.mark.slow
def test_predictions_and_page_are_of_all_seeds(whole):
  outcome, workdir = whole
  data = tiny.make_domains()
  inputs = data.test.inputs[:5]
  found = outcome.experiment.predict(outcome.state, inputs)
  each = []
  for i, seed in enumerate(SEEDS):
    single = Experiment(tiny.make_run_config(seed=seed), data, 1)
    own_state = several_seeds.take_seed(outcome.state, i)
    each.append(single.predict(own_state, inputs))
  rtol = closeness.tolerance(np.float32, tiny.LAYERS)
  np.testing.assert_allclose(found, np.mean(each, axis=0), rtol)
  path = predictions.write_predictions(
    tiny.make_run_config(**TOGETHER), workdir, data
  )
  assert len(path.read_text().splitlines()) == 1 + data.test.size
  text = report.write_run_page(outcome, workdir).read_text()
  assert 'moda_fm, seed 5' in text
  assert '±' in text


@pytest.mark.slow
def test_single_source_methods_keep_their_predictors(tmp_path):
  outcome = run(tmp_path, method='dann_ss')
  last = read_metrics(tmp_path)[-1]
  assert set(outcome.by_predictor) == {'a', 'b', 'c'}
  assert set(outcome.by_seed) == set(SEEDS)
  assert outcome.accuracy == np.mean(list(outcome.by_seed.values()))
  assert outcome.accuracy >= max(outcome.by_predictor.values())
  assert last['target/accuracy/b'] == outcome.by_predictor['b']
  assert (
    'dann_ss from b' in report.write_run_page(outcome, tmp_path).read_text()
  )


@pytest.mark.parametrize('seeds', [0, -2])
def test_fewer_than_one_is_refused(tmp_path, seeds):
  message = (
    f'config.run.seeds = {seeds} is not allowed; it must be .* 1 or more'
  )
  with pytest.raises(UserError, match=message):
    run(tmp_path, seeds=seeds)


def test_another_number_of_seeds_is_another_run(whole):
  with pytest.raises(UserError, match='seeds: 2 there, 3 now'):
    run(whole[1], seeds=3)
