"""Dense networks on rows of features, from arrays to predictions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
import tiny

import moda_jax
from configs import arrays
from moda_jax.errors import UserError
from moda_jax.models import NETWORKS
from moda_jax.training import loop

FEATURES = 12
VALUES = {'network': 'mlp', 'hidden': 16, 'steps': 60, 'batch_size': 8}


CSR = {'data': [1.0], 'indices': [0], 'indptr': [0, 1], 'shape': [1, 3]}


def make_rows(seed=0, scale=1000.0):
  """Returns domains that a classifier can learn, of columns on any scale."""
  rng = np.random.default_rng(seed)
  centres = rng.normal(size=(tiny.CLASSES, FEATURES))
  scales = np.geomspace(1 / scale, scale, FEATURES)

  def make(count, shift):
    labels = rng.integers(0, tiny.CLASSES, count)
    rows = 3 * centres[labels] + rng.normal(size=(count, FEATURES)) + shift
    return np.maximum(rows, 0) * scales, labels

  return {name: make(60, 0.1 * i) for i, name in enumerate('abt')}


def test_layers_and_columns():
  networks = NETWORKS['mlp'](hidden=8, layers=2).create(3)
  assert not networks.takes_images
  assert networks.dropout_range == (0.2, 0.8)
  x = 5 + 3 * jax.random.normal(jax.random.key(1), (50, 4))
  x = x.at[:, 2].set(7.0)
  z, variables = networks.extractor.init_with_output(jax.random.key(0), x)
  kernels = [p['kernel'].shape for p in variables['params'].values()]
  assert kernels == [(4, 8), (8, 8)]
  np.testing.assert_allclose(variables['columns']['mean'], x.mean(0), rtol=1e-5)
  # A constant column says nothing, and divides nothing by zero.
  shifted = x.at[:, 2].set(7.0) * 10 + 1
  again, _ = networks.extractor.init_with_output(jax.random.key(0), shifted)
  np.testing.assert_allclose(z, again, rtol=1e-3, atol=1e-4)
  heads = (networks.classifier, networks.discriminator)
  outputs = [h.init_with_output(jax.random.key(0), z)[0].shape for h in heads]
  assert outputs == [(50, 3), (50, 2)]
  plain = NETWORKS['mlp'](standardise=False).create(3).extractor
  assert set(plain.init(jax.random.key(0), jnp.zeros((1, 4)))) == {'params'}


@pytest.mark.parametrize('sparse', [False, True])
def test_rows_in_memory_are_learned_and_predicted(tmp_path, sparse):
  data = make_rows()
  rows, labels = data['t']
  if sparse:
    data = {k: (scipy.sparse.csr_matrix(x), y) for k, (x, y) in data.items()}
  run = moda_jax.adapt(data, 't', tmp_path / 'run', **VALUES)
  assert run.accuracy > 0.9  # chance is a third
  loaded = moda_jax.load(tmp_path / 'run')
  predicted = loaded.predict(rows)
  assert np.mean(predicted.argmax(axis=1) == labels) == run.accuracy
  np.testing.assert_allclose(
    loaded.predict(scipy.sparse.coo_array(rows)), predicted, rtol=1e-6
  )
  changed = data | {'t': (data['t'][0] * 2, labels)}
  with pytest.raises(UserError, match='another config'):
    moda_jax.adapt(changed, 't', tmp_path / 'run', **VALUES)


@pytest.mark.slow
def test_files_of_dense_and_of_sparse_rows_are_the_same_run(tmp_path):
  accuracies = []
  for kind in ('features', 'sparse'):
    place = tmp_path / kind
    place.mkdir()
    for name, (rows, labels) in make_rows().items():
      held = {'features': rows}
      if kind == 'sparse':
        m = scipy.sparse.csr_array(rows)
        held = {k: getattr(m, k) for k in ('data', 'indices', 'indptr')}
        held['shape'] = m.shape
      np.savez(place / f'{name}.npz', labels=labels, **held)
    values = ','.join(f'{k}={v}' for k, v in VALUES.items())
    config = arrays.get_config(f'{place},target=t,{values},method=moda')
    outcome = loop.train(config, tmp_path / f'run {kind}', devices=1)
    accuracies.append(outcome.accuracy)
  assert accuracies[0] == accuracies[1] > 0.9


@pytest.mark.slow
def test_several_seeds_scale_by_their_own_rows(tmp_path):
  values = VALUES | {'seeds': 2, 'samples': 30, 'steps': 2}
  run = moda_jax.adapt(make_rows(), 't', tmp_path, **values)
  mean = run._state.method_state['extractor']['columns']['mean']
  assert mean.shape == (2, FEATURES)
  assert (mean[0] != mean[1]).all()


def bad(change):
  data = make_rows()
  rows, labels = data['a']
  return data | {'a': (change(rows), labels)}


def with_value(value):
  def change(rows):
    rows = rows.copy()
    rows[3, 2] = value
    return rows

  return change


@pytest.mark.parametrize(
  ('change', 'message'),
  [
    (with_value(np.nan), 'a: rows of features hold values that are not finite'),
    (with_value(1e300), 'not finite in float32'),
    (lambda x: x.astype(str), 'rows of features of type <U'),
    (lambda x: x[:, :0], r'rows of features of shape \(60, 0\)'),
    (lambda x: x[:, :5], r'differ in shape \(a \(5,\), b \(12,\), t \(12,\)\)'),
    (lambda x: x[:7], r'labels of shape \(60,\) for 7 examples'),
    (lambda x: scipy.sparse.csr_array(with_value(np.inf)(x)), 'not finite'),
    (lambda x: np.zeros((60, 8, 8), np.uint8), 'differ in shape'),
  ],
)
def test_bad_rows_are_refused(tmp_path, change, message):
  with pytest.raises(UserError, match=message):
    moda_jax.adapt(bad(change), 't', tmp_path, **VALUES)


@pytest.mark.parametrize(
  ('values', 'message'),
  [
    ({'network': 'digits'}, "'digits' takes images; the target 't' has rows"),
    ({'features': 'tfidf'}, "'tfidf' is for sparse counts of words"),
    ({'hidden': 0}, 'config.network.hidden = 0 is not allowed'),
    ({'layers': 17}, 'config.network.layers = 17 is not allowed'),
    ({'dropout_min': 0.9}, 'dropout_min = 0.9 is above'),
  ],
)
def test_values_that_do_not_fit_rows_are_refused(tmp_path, values, message):
  values = VALUES | values
  if values['network'] != 'mlp':
    del values['hidden']
  with pytest.raises(UserError, match=message):
    moda_jax.adapt(make_rows(), 't', tmp_path, **values)


@pytest.mark.parametrize(
  ('held', 'message'),
  [
    ({}, "must hold 'images', or 'features'"),
    ({'images': 1, 'features': 2}, 'one of them alone'),
    (CSR | {'indices': [99]}, 'not a sparse matrix'),
    (CSR | {'indptr': [0, 9]}, 'not a sparse matrix'),
    (CSR | {'shape': [[1]]}, 'not a sparse matrix'),
  ],
)
def test_files_without_sound_inputs_are_refused(tmp_path, held, message):
  for name in 'abt':
    np.savez(tmp_path / f'{name}.npz', labels=np.arange(3), **held)
  config = arrays.get_config(f'{tmp_path},target=t,network=mlp')
  with pytest.raises(UserError, match=message):
    loop.train(config, tmp_path / 'run')


def test_new_rows_must_have_the_same_columns(tmp_path):
  run = moda_jax.adapt(make_rows(), 't', tmp_path, **VALUES | {'steps': 1})
  for rows, message in (
    (np.zeros((3, 5)), '12 features are needed'),
    (np.full((3, 12), np.nan), 'not finite'),
    (np.zeros((0, 12)), r'shape \(0, 12\)'),
    (['a.png'], 'type <U'),
  ):
    with pytest.raises(UserError, match=message):
      run.predict(rows)
