"""Exported models: the same answers as the run, without the project's code."""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
import tiny
from jax import export
from PIL import Image
from random_models import (
  CLASSES,
  SMALL,
  make_inputs,
  make_trained,
  make_trained_on_features,
)

import moda_jax
from moda_jax.api import Run
from moda_jax.errors import UserError
from moda_jax.export import __main__ as command
from moda_jax.export import formats
from moda_jax.export.card import make_card
from moda_jax.export.folder import write_folder


def check_answers(run, folder):
  """Compares an exported model with the run, for several batch sizes."""
  run.export(folder, ['stablehlo'])
  model = export.deserialize((folder / 'model.stablehlo').read_bytes())
  assert model.platforms == ('cpu', 'cuda', 'tpu')
  assert str(model.in_avals[0].shape[0]) == 'b'
  for count in (1, 5):
    inputs = make_inputs(model.in_avals[0].shape[1:], count)
    made = np.asarray(model.call(inputs))
    assert made.shape == (count, len(CLASSES))
    np.testing.assert_allclose(made, run.predict(inputs), **SMALL)
  np.testing.assert_allclose(made.sum(axis=1), 1, rtol=1e-5)
  assert np.ptp(made, axis=0).max() > 1e-4


@pytest.mark.parametrize(
  ('shape', 'values'),
  [
    ((32, 32, 3), {'network': 'digits', 'width': 0.05}),
    ((9,), {'network': 'mlp', 'hidden': 8}),
    ((9,), {'network': 'reviews', 'width': 0.05}),
    ((8, 8, 3), {'network': 'tiny images', 'ema_decay': 0.9}),
    ((8, 8, 3), {'network': 'tiny images', 'method': 'dann_ss'}),
    ((8, 8, 3), {'network': 'tiny images', 'method': 'moe'}),
    ((8, 8, 3), {'network': 'tiny images', 'method': 'm3sda'}),
    ((8, 8, 3), {'network': 'tiny images', 'seeds': 2}),
    ((9,), {'network': 'mlp', 'method': 'dann_ss', 'seeds': 2}),
  ],
  ids=str,
)
def test_answers_are_those_of_the_run(tmp_path, shape, values):
  trained = make_trained(tmp_path / 'run', shape, **values)
  check_answers(Run(trained), tmp_path / 'out')


@pytest.mark.slow
def test_answers_of_resnet(tmp_path):
  trained = make_trained(
    tmp_path / 'run',
    (32, 32, 3),
    'torchvision',
    network='resnet50',
    width=1 / 16,
  )
  check_answers(Run(trained), tmp_path / 'out')


@pytest.mark.slow
def test_the_fixed_network_is_inside(tmp_path):
  trained, backbone = make_trained_on_features(tmp_path)
  check_answers(Run(trained), tmp_path / 'out')
  card = (tmp_path / 'out' / 'MODEL_CARD.md').read_text()
  assert f'pretrained weights: {backbone.description}' in card
  assert '`[b, 32, 32, 3]`' in card


def test_parts_that_do_not_predict_are_left_out(tmp_path):
  trained = make_trained(tmp_path / 'run', (64,), network='mlp', hidden=500)
  write_folder(trained, tmp_path / 'out', ['stablehlo'])
  size = (tmp_path / 'out' / 'model.stablehlo').stat().st_size
  values = 64 * 500 + 500 + 500 * 3 + 3 + 2 * 64  # not 500 * 500 in addition
  assert 4 * values < size < 4 * values + 20_000


def run_card(folder, monkeypatch):
  """Executes every piece of code in a card; returns the names each leaves."""
  monkeypatch.chdir(folder)
  text = pathlib.Path('MODEL_CARD.md').read_text('utf-8')
  codes = re.findall(r'```python\n(.*?)```', text, re.DOTALL)
  made = []
  for code in codes:
    assert 'moda_jax' not in code
    names = {}
    exec(code, names)
    made.append(names)
  return made


@pytest.fixture(scope='module')
def workdir(tmp_path_factory):
  place = tmp_path_factory.mktemp('export') / 'run'
  config = tiny.make_run_config(method='source_only', steps=2)
  moda_jax.train(config, place, tiny.make_domains())
  return place


def test_the_command_writes_what_its_card_says(
  workdir, tmp_path, monkeypatch, capsys
):
  folder = tmp_path / 'deep' / 'out'
  given = [f'--workdir={workdir}', f'--to={folder}']
  command.main([*given, '--formats=stablehlo,savedmodel'])
  names = ['MODEL_CARD.md', 'classes.json', 'model.stablehlo', 'savedmodel']
  assert sorted(path.name for path in folder.iterdir()) == names
  assert capsys.readouterr().out.strip() == f'{folder}: {", ".join(names)}'
  root = str(pathlib.Path(moda_jax.__file__).parents[1]).encode()
  for path in folder.rglob('*'):
    assert path.is_dir() or root not in path.read_bytes(), path
  run = moda_jax.load(workdir)
  assert json.loads((folder / 'classes.json').read_text()) == list(run.classes)
  card = (folder / 'MODEL_CARD.md').read_text()
  assert f'{100 * run.accuracy:.2f} %' in card
  assert '- method `source_only`, network `tiny images`, 2 steps' in card
  assert '- source a: random, 40 examples' in card
  # A photograph that lies on its side, of another size.
  pixels = make_inputs((50, 40, 3), 1)[0]
  exif = Image.Exif()
  exif[0x0112] = 6
  Image.fromarray(pixels).save(folder / 'picture.jpg', exif=exif)
  wanted = run.predict([folder / 'picture.jpg'])
  made = run_card(folder, monkeypatch)
  assert len(made) == 2
  for left in made:
    np.testing.assert_allclose(left['probabilities'], wanted, **SMALL)
  said = capsys.readouterr().out.splitlines()
  assert said == [str([run.classes[wanted.argmax()]])] * 2


def test_the_card_of_rows(tmp_path, monkeypatch):
  trained = make_trained(
    tmp_path / 'run', (9,), network='mlp', hidden=8, method='dann_ss', seeds=2
  )
  folder = Run(trained).export(tmp_path / 'out', ['stablehlo'])
  rows = make_inputs((9,), 4)
  np.save(folder / 'rows.npy', rows.astype(np.float64))
  (made,) = run_card(folder, monkeypatch)
  wanted = Run(trained).predict(rows)
  np.testing.assert_allclose(made['probabilities'], wanted, **SMALL)
  assert made['classes'] == list(CLASSES)
  card = (folder / 'MODEL_CARD.md').read_text('utf-8')
  assert 'mean over the predictors of each source and the 2 seeds' in card
  assert 'accuracy on the target: not known' in card
  assert 'folder pictures, 9 examples' in card
  assert '/home' not in card


def test_the_card_tells_of_weighted_words(tmp_path):
  trained = make_trained(
    tmp_path / 'run', (9,), network='reviews', width=0.05, features='tfidf'
  )
  card = make_card(trained, ['stablehlo'])
  assert 'each row then scaled to length 1' in card


def test_the_card_tells_of_padding(tmp_path):
  trained = make_trained(tmp_path / 'run', (32, 32, 3), network='tiny images')
  card = make_card(trained, [])
  assert '28 × 28' not in card
  assert "pip install 'moda_jax[onnx]'" in card
  trained.model.inputs = trained.model.inputs._replace(padded=True)
  assert 'images of 28 × 28 get a margin of 2' in make_card(trained, [])


@pytest.mark.parametrize(
  ('values', 'message'),
  [
    ({'workdir': None}, '--workdir must be given'),
    ({'to': None}, '--to must be given'),
    ({'to': ''}, "--to='' does not name a folder"),
    ({'workdir': '{tmp}'}, 'does not hold a run'),
    ({'to': '{tmp}/full'}, 'full is there already and is not an empty folder'),
    ({'to': '{tmp}/full/file'}, 'file is there already and is not an empty'),
    ({'to': '{tmp}/full/file/x'}, 'x cannot be written'),
    ({'formats': 'tflite'}, "'tflite' is unknown; allowed are stablehlo, "),
  ],
)
def test_wrong_flags_are_refused(workdir, tmp_path, values, message):
  (tmp_path / 'full').mkdir()
  (tmp_path / 'full' / 'file').write_text('mine')
  flags = {'workdir': workdir, 'to': f'{tmp_path}/out', 'formats': 'stablehlo'}
  flags |= values
  given = [f'--{k}={v}' for k, v in flags.items() if v is not None]
  with pytest.raises(UserError, match=message):
    command.main([flag.format(tmp=tmp_path) for flag in given])
  assert [path.name for path in tmp_path.iterdir()] == ['full']
  assert (tmp_path / 'full' / 'file').read_text() == 'mine'


def test_formats_that_lack_a_package_are_left_out(monkeypatch):
  find_spec = importlib.util.find_spec

  def find(name):
    return None if name in missing else find_spec(name)

  monkeypatch.setattr(formats.importlib.util, 'find_spec', find)
  missing = {'jax2onnx'}
  assert formats.choose([]) == ['stablehlo', 'savedmodel']
  with pytest.raises(UserError, match=r"'onnx' needs .*'moda_jax\[onnx\]'"):
    formats.choose(['onnx'])
  missing = {'jax2onnx', 'jax.experimental.jax2tf'}
  assert formats.choose([]) == ['stablehlo']
  with pytest.raises(UserError, match=r"'savedmodel' needs .*jax2tf"):
    formats.choose(['stablehlo', 'savedmodel'])


def test_an_empty_folder_is_filled_and_failure_leaves_nothing(
  tmp_path, monkeypatch
):
  trained = make_trained(tmp_path / 'run', (9,), network='mlp', hidden=8)
  place = tmp_path / 'out'
  place.mkdir()

  def fail(*_):
    raise OSError('the disk is full')

  with monkeypatch.context() as patch:
    patch.setitem(formats.WRITERS, 'savedmodel', fail)
    with pytest.raises(UserError, match='cannot be written: the disk is full'):
      write_folder(trained, place, ['stablehlo', 'savedmodel'])
  assert sorted(path.name for path in tmp_path.iterdir()) == ['out', 'run']
  assert not list(place.iterdir())
  write_folder(trained, place, ['stablehlo'])
  assert len(list(place.iterdir())) == 3


@pytest.mark.slow
def test_the_model_runs_outside_of_the_project(workdir, tmp_path):
  formats = ['stablehlo', 'savedmodel']
  folder = moda_jax.load(workdir).export(tmp_path / 'out', formats)
  images = make_inputs((32, 32, 3), 3)
  np.save(tmp_path / 'images.npy', images)
  program = (
    'import sys, numpy as np\n'
    'from jax import export\n'
    "model = export.deserialize(open('out/model.stablehlo', 'rb').read())\n"
    "images = np.load('images.npy')\n"
    "np.save('jax.npy', model.call(images))\n"
    'import tensorflow as tf\n'
    "model = tf.saved_model.load('out/savedmodel')\n"
    "served = model.signatures['serving_default'](inputs=tf.constant(images))\n"
    "np.save('tf.npy', served['probabilities'].numpy())\n"
    "assert 'moda_jax' not in sys.modules\n"
  )
  ended = subprocess.run(
    [sys.executable, '-I', '-c', program],
    cwd=tmp_path,
    env={**os.environ, 'TF_CPP_MIN_LOG_LEVEL': '2'},
    capture_output=True,
    text=True,
  )
  assert ended.returncode == 0, ended.stderr
  assert folder.is_dir()
  wanted = moda_jax.load(workdir).predict(images)
  for name in ('jax', 'tf'):
    made = np.load(tmp_path / f'{name}.npy')
    np.testing.assert_allclose(made, wanted, **SMALL)
