"""ONNX files: the same answers from onnxruntime, without the project's code.

The first conversion imports all of jax2onnx, which takes long.
"""

import json
import pathlib
import re
import subprocess
import sys

import jax
import numpy as np
import pytest
from flax import linen as nn
from random_models import (
  CLASSES,
  SMALL,
  make_inputs,
  make_trained,
  make_trained_on_features,
)

from moda_jax.api import Run
from moda_jax.errors import UserError
from moda_jax.export import formats, lowering, onnx_file

REASON = "needs the extra onnx: pip install 'moda_jax[onnx]'"
IMAGE, ROW = (32, 32, 3), (9,)
DIGITS = {'network': 'digits', 'width': 0.05}
MLP = {'network': 'mlp', 'hidden': 8}
RESNET = {'network': 'resnet50', 'width': 1 / 16}


def check_answers(run, folder):
  """Compares the file with the run for several batch sizes; returns it."""
  onnxruntime = pytest.importorskip('onnxruntime', reason=REASON)
  pytest.importorskip('jax2onnx', reason=REASON)
  run.export(folder, ['onnx'])
  model = onnxruntime.InferenceSession(str(folder / 'model.onnx'))
  (taken,), (given,) = model.get_inputs(), model.get_outputs()
  assert (taken.name, taken.shape[0]) == ('inputs', 'b')
  assert (given.name, given.shape) == ('probabilities', ['b', len(CLASSES)])
  is_image = len(taken.shape) == 4
  assert taken.type == ('tensor(uint8)' if is_image else 'tensor(float)')
  for count in (1, 5):
    inputs = make_inputs(tuple(taken.shape[1:]), count)
    (made,) = model.run(None, {'inputs': inputs})
    np.testing.assert_allclose(made, run.predict(inputs), **SMALL)
  assert np.ptp(made, axis=0).max() > 1e-4
  return folder


@pytest.mark.slow
@pytest.mark.parametrize(
  ('shape', 'variant', 'values'),
  [
    (IMAGE, '', DIGITS),
    (IMAGE, '', DIGITS | {'method': 'dann_ss', 'gain': 2}),
    (IMAGE, '', DIGITS | {'method': 'm3sda'}),
    (IMAGE, '', DIGITS | {'method': 'moe'}),
    (IMAGE, '', DIGITS | {'method': 'dann_ss', 'seeds': 2, 'gain': 3}),
    (ROW, '', MLP),
    (ROW, '', MLP | {'method': 'dann_ss', 'seeds': 2}),
    (ROW, '', MLP | {'method': 'moe'}),
    (ROW, '', {'network': 'reviews', 'width': 0.05}),
    (ROW, '', {'network': 'reviews', 'width': 0.05, 'method': 'm3sda'}),
    ((8, 8, 3), '', {'network': 'tiny images', 'ema_decay': 0.9}),
    (IMAGE, 'torchvision', RESNET),
    (IMAGE, 'v1', RESNET),
    (IMAGE, 'torchvision', RESNET | {'method': 'm3sda', 'gain': 1.3}),
    (IMAGE, 'torchvision', RESNET | {'method': 'moe'}),
  ],
  ids=str,
)
def test_answers_are_those_of_the_run(tmp_path, shape, variant, values):
  trained = make_trained(tmp_path / 'run', shape, variant, **values)
  check_answers(Run(trained), tmp_path / 'out')


@pytest.mark.slow
def test_the_fixed_network_is_inside(tmp_path):
  trained, _ = make_trained_on_features(tmp_path)
  folder = check_answers(Run(trained), tmp_path / 'out')
  assert '`[b, 32, 32, 3]`' in (folder / 'MODEL_CARD.md').read_text('utf-8')


@pytest.mark.slow
def test_the_card_loads_it_outside_of_the_project(tmp_path):
  trained = make_trained(tmp_path / 'run', ROW, **MLP)
  folder = check_answers(Run(trained), tmp_path / 'out')
  names = sorted(path.name for path in folder.iterdir())
  assert names == ['MODEL_CARD.md', 'classes.json', 'model.onnx']
  root = str(pathlib.Path(lowering.__file__).parents[2]).encode()
  assert root not in (folder / 'model.onnx').read_bytes()
  rows = make_inputs(ROW, 4)
  np.save(folder / 'rows.npy', rows)
  card = (folder / 'MODEL_CARD.md').read_text('utf-8')
  (code,) = re.findall(r'```python\n(.*?)```', card, re.DOTALL)
  code += "import sys\nassert 'jax' not in sys.modules\n"
  code += "np.save('made.npy', probabilities)\nprint(json.dumps(classes))\n"
  ended = subprocess.run(
    [sys.executable, '-I', '-c', code],
    cwd=folder,
    capture_output=True,
    text=True,
  )
  assert ended.returncode == 0, ended.stderr
  assert json.loads(ended.stdout.splitlines()[-1]) == list(CLASSES)
  wanted = Run(trained).predict(rows)
  np.testing.assert_allclose(np.load(folder / 'made.npy'), wanted, **SMALL)


@pytest.mark.slow
@pytest.mark.parametrize(
  ('predict', 'message'),
  [
    (lambda x: jax.pure_callback(np.sin, x, x), 'jax2onnx cannot convert it'),
    (None, 'the converted model gives other answers'),
  ],
)
def test_what_cannot_be_converted_is_refused(
  tmp_path, monkeypatch, predict, message
):
  pytest.importorskip('jax2onnx', reason=REASON)
  (batch,) = jax.export.symbolic_shape('b')
  taken = jax.ShapeDtypeStruct((batch, 4), np.float32)
  if predict is None:
    monkeypatch.setattr(onnx_file, 'to_plain', lambda *_: lambda x: x + 0.01)
    predict = jax.numpy.negative
  with pytest.raises(UserError, match=message) as caught:
    onnx_file.write(predict, taken, tmp_path)
  assert len(str(caught.value).splitlines()) == 1
  assert not list(tmp_path.iterdir())


def test_plain_operations_compute_the_same():
  rng = np.random.default_rng(0)
  x = rng.normal(size=(2, 3, 7, 7, 4)).astype(np.float32)
  kernels = rng.normal(size=(3, 3, 3, 4, 5)).astype(np.float32)

  def convolve(x, kernel):
    numbers = ('NHWC', 'HWIO', 'NHWC')
    y = jax.lax.conv_general_dilated(
      x, kernel, (1, 1), 'SAME', dimension_numbers=numbers
    )
    return nn.max_pool(y, (3, 3), strides=(2, 2), padding=((1, 1), (1, 1)))

  def both(x):
    # Reshapes with its axes in another order.
    return jax.vmap(convolve, (1, 0))(x, kernels)

  plain = lowering.to_plain(both, jax.ShapeDtypeStruct(x.shape, x.dtype))
  traced = str(jax.make_jaxpr(plain)(x))
  assert 'reduce_window' not in traced
  assert 'pad[' not in traced
  np.testing.assert_allclose(plain(x), both(x), rtol=1e-5, atol=1e-5)


def test_plain_operations_take_the_default_of_platforms():
  def double(x):
    return 2 * x

  def choose(x):
    return jax.lax.platform_dependent(x, cpu=double, default=lambda x: x + 4)

  taken = jax.ShapeDtypeStruct((2,), np.float32)
  plain = lowering.to_plain(jax.jit(choose), taken)
  np.testing.assert_array_equal(plain(np.ones(2, np.float32)), [5, 5])


def test_a_model_that_it_cannot_hold_is_exported_without_it(
  tmp_path, monkeypatch, caplog
):
  def refuse(*_):
    raise UserError('onnx cannot hold this model')

  monkeypatch.setattr(formats, 'choose', lambda _: ['stablehlo', 'onnx'])
  monkeypatch.setitem(formats.WRITERS, 'onnx', refuse)
  run = Run(make_trained(tmp_path / 'run', ROW, **MLP))
  made = run.export(tmp_path / 'out')
  assert (made / 'model.stablehlo').exists()
  assert 'onnx cannot hold' in caplog.text
  with pytest.raises(UserError, match='cannot hold'):
    run.export(tmp_path / 'other', ['onnx'])
  assert not (tmp_path / 'other').exists()


def test_it_is_written_by_default_where_it_can_be(monkeypatch):
  monkeypatch.setattr(onnx_file, 'is_installed', lambda: True)
  assert formats.choose([]) == ['stablehlo', 'savedmodel', 'onnx']
