"""The public API: what a notebook works with."""

import json
import pickle
import shutil

import numpy as np
import pytest
import tiny
from PIL import Image

import moda_jax
from moda_jax.errors import UserError
from moda_jax.training.experiment import Experiment
from moda_jax.training.run_folder import read_metrics

VALUES = {'network': 'tiny images', 'steps': 4, 'batch_size': 8}


def make_data(size=32):
  domains = tiny.make_domains()
  made = (*domains.sources, domains.target)
  data = {d.name: (d.inputs[:, :size, :size], d.labels) for d in made}
  data['t'] = (data['t'][0], None)
  return data


@pytest.fixture(scope='module')
def run(tmp_path_factory):
  workdir = tmp_path_factory.mktemp('api') / 'run'
  return moda_jax.train(tiny.make_run_config(), workdir, tiny.make_domains())


def test_a_run_tells_how_it_went(run):
  last = read_metrics(run.workdir)[-1]
  assert run.accuracy == last['target/accuracy']
  assert run.classes == ('class 0', 'class 1', 'class 2')
  assert run.metrics['step'].tolist() == [2, 4, 6]
  assert run.metrics['loss'].shape == (3,)
  assert set(run.source_weights) == {'a', 'b', 'c'}
  np.testing.assert_allclose(sum(run.source_weights.values()), 1, rtol=1e-5)
  assert run.evaluate() == {'target/accuracy': run.accuracy}
  assert run.report() == run.workdir / 'report' / 'index.html'
  assert len(repr(run)) < 200
  assert f'{100 * run.accuracy:.2f} %' in repr(run)


def test_a_run_is_loaded_from_its_folder_alone(run, tmp_path, monkeypatch):
  shutil.copytree(run.workdir, tmp_path / 'moved')

  def refuse(*_):
    raise AssertionError('data is read')

  monkeypatch.setattr('moda_jax.data.load._read', refuse)
  loaded = moda_jax.load(tmp_path / 'moved')
  images = tiny.make_domains().test.inputs
  np.testing.assert_array_equal(loaded.predict(images), run.predict(images))
  assert loaded.classes == run.classes
  assert loaded.accuracy == run.accuracy


def test_predictions_are_those_of_the_evaluation(run):
  test = tiny.make_domains().test
  probabilities = run.predict(test.inputs)
  np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
  assert (probabilities.argmax(axis=1) == test.labels).mean() == run.accuracy


@pytest.mark.slow
@pytest.mark.parametrize('method', ['moe', 'dann_ss', 'supervised'])
def test_a_loaded_run_of_other_methods_predicts_alike(method, tmp_path):
  config = tiny.make_run_config(method=method, seeds=2)
  trained = moda_jax.train(config, tmp_path, tiny.make_domains())
  images = tiny.make_domains().test.inputs[:5]
  loaded = moda_jax.load(tmp_path)
  np.testing.assert_array_equal(loaded.predict(images), trained.predict(images))
  assert loaded.predict(images).shape == (5, 3)


def test_images_come_in_many_forms(run, tmp_path):
  images = tiny.make_domains().test.inputs[:3]
  expected = run.predict(images)
  forms = [list(images), images / np.float32(255), tuple(images)]
  for i, image in enumerate(images):
    Image.fromarray(image).save(tmp_path / f'{i}.png')
  forms.append([str(tmp_path / f'{i}.png') for i in range(3)])
  forms.append([tmp_path / f'{i}.png' for i in range(3)])
  for form in forms:
    np.testing.assert_allclose(run.predict(form), expected, rtol=1e-5)
  grey = images[..., :1]
  np.testing.assert_array_equal(
    run.predict(grey), run.predict(np.repeat(grey, 3, axis=-1))
  )
  np.testing.assert_array_equal(run.predict(grey[..., 0]), run.predict(grey))


def test_images_of_other_sizes_are_resized_as_by_pillow(run):
  rng = np.random.default_rng(0)
  sizes = ((50, 40), (20, 64))
  images = [rng.integers(0, 256, (*s, 3), np.uint8) for s in sizes]
  resized = [
    np.asarray(Image.fromarray(x).resize((32, 32), Image.Resampling.BILINEAR))
    for x in images
  ]
  np.testing.assert_array_equal(
    run.predict(images), run.predict(np.stack(resized))
  )


@pytest.mark.parametrize(
  ('inputs', 'message'),
  [
    (np.zeros((2, 32, 32, 3), np.int64), 'int64; uint8, or floats in 0..1'),
    (np.full((2, 32, 32, 3), 1.5), 'within 0..1'),
    (np.full((2, 32, 32, 3), np.nan), 'within 0..1'),
    (np.zeros((2, 32, 32, 4), np.uint8), r'shape \(32, 32, 4\)'),
    (np.zeros((0, 32, 32, 3), np.uint8), 'there are no inputs'),
    ([], 'there are no inputs'),
    (np.zeros(5), r'shape \(5,\)'),
    ('photo.jpg', 'a single path; give a list'),
    (['gone.jpg'], 'gone.jpg'),
  ],
)
def test_other_inputs_are_refused(run, inputs, message):
  with pytest.raises(UserError, match=message):
    run.predict(inputs)


def test_adapt_trains_on_arrays_and_brings_them_to_size(tmp_path):
  run = moda_jax.adapt(make_data(24), 't', tmp_path, **VALUES)
  assert run.accuracy is None
  assert run.predict(make_data(24)['t'][0]).shape == (32, 3)
  with pytest.raises(UserError, match='nothing to evaluate on'):
    run.evaluate()
  loaded = moda_jax.load(tmp_path)
  np.testing.assert_array_equal(
    loaded.predict(make_data(24)['t'][0]), run.predict(make_data(24)['t'][0])
  )


@pytest.mark.slow
def test_adapt_gives_every_seed_its_own_draw(tmp_path):
  """As a config's data does: the seeds differ, and each is its single run."""
  values = VALUES | {'samples': 10, 'evaluate_on': 'undrawn', 'seeds': 2}
  data = make_data()
  data['t'] = (data['t'][0], tiny.make_domains().target.labels)
  both = moda_jax.adapt(data, 't', tmp_path / 'both', **values)
  drawn = both._experiment.evaluator._evaluators
  first, second = (e._domains.target.inputs for e in drawn.values())
  assert (first != second).any()
  single = moda_jax.adapt(data, 't', tmp_path / 's', **values | {'seeds': 1})
  own = single._experiment.domains.target.inputs
  np.testing.assert_array_equal(first, own)


@pytest.mark.slow
def test_a_moving_average_is_what_predicts(tmp_path):
  config = tiny.make_run_config(ema_decay=0.5)
  experiment = Experiment(config, tiny.make_domains(), devices=1)
  state, expected = experiment.initial_state, None
  for i, batch in enumerate(experiment.make_batches(0)):
    before = state.ema_params
    before = [np.asarray(x) for x in jax_leaves(before)]
    state, _ = experiment.train_step(state, batch)
    now = [np.asarray(x) for x in jax_leaves(state.params)]
    expected = [0.5 * a + 0.5 * b for a, b in zip(before, now, strict=True)]
    if i == 2:
      break
  for a, b in zip(jax_leaves(state.ema_params), expected, strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-6)
  images = tiny.make_domains().test.inputs
  averaged = state.replace(params=state.ema_params, ema_params=None)
  np.testing.assert_array_equal(
    experiment.predict(state, images), experiment.predict(averaged, images)
  )
  whole = moda_jax.train(config, tmp_path, tiny.make_domains())
  loaded = moda_jax.load(tmp_path)
  np.testing.assert_array_equal(loaded.predict(images), whole.predict(images))


def jax_leaves(tree):
  import jax

  return jax.tree.leaves(jax.device_get(tree))


def test_a_folder_without_a_run_is_refused(tmp_path):
  with pytest.raises(UserError, match='does not hold a run'):
    moda_jax.load(tmp_path)
  (tmp_path / 'config.json').write_text('{"half')
  with pytest.raises(UserError, match=r'config\.json is damaged'):
    moda_jax.load(tmp_path)


def test_unknown_names_are_missing_attributes():
  with pytest.raises(AttributeError, match='fit'):
    _ = moda_jax.fit
  assert {'train', 'adapt', 'load', 'METHODS'} <= set(dir(moda_jax))
  assert 'moda_fm' in moda_jax.METHODS


def test_a_run_says_how_to_be_saved(run):
  with pytest.raises(TypeError, match=r'moda_jax\.load'):
    pickle.dumps(run)


# What version 0.1 wrote: one flat list of values, `data` for origins.
FLAT = {
  'experiment': 'mini digits',
  'method': 'moda',
  'seed': 3,
  'seeds': 1,
  'sources': ['a', 'b', 'c'],
  'target': 't',
  'datasets': dict.fromkeys('abct', 'random'),
  'data_dir': '',
  'samples': 0,
  'test': 'rest',
  'network': 'digits',
  'width': 0.05,
  'weak': 'never',
  'mu_d': 0.3,
  'mu_s': 0.25,
  'adadelta_rho': 0.8,
  'rate_multipliers': [['^beta$', 0.1], ['.*', 1.0]],
  'batch_size': 8,
  'steps': 2,
  'data': {'a': 'memory, 40 examples'},
}


@pytest.mark.slow
def test_a_run_of_the_flat_config_is_read(tmp_path):
  """The folder is one of today with the config that version 0.1 wrote."""
  config = tiny.make_run_config(
    network='digits', width=0.05, init='torch', method='moda', steps=2, seed=3
  )
  trained = moda_jax.train(config, tmp_path, tiny.make_domains())
  (tmp_path / 'config.json').write_text(json.dumps(FLAT))
  loaded = moda_jax.load(tmp_path)
  assert loaded.config.objective.method == 'moda'
  assert loaded.config.objective.mu_s == 0.25
  assert loaded.config.data.evaluate_on == 'undrawn'
  assert loaded.config.views.weak_augment == 'never'
  assert loaded.config.optimizer.rho == 0.8
  assert loaded.config.optimizer.rate_multipliers == (
    ('^beta$', 0.1),
    ('.*', 1.0),
  )
  assert loaded.config.network.init == 'torch'
  assert loaded.classes == ('0', '1', '2')
  images = tiny.make_domains().test.inputs
  np.testing.assert_array_equal(loaded.predict(images), trained.predict(images))
