"""ResNet-50: its shape, groups, several devices, cheaper modes."""

import functools

import closeness
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from moda_jax.errors import UserError
from moda_jax.models import resnet
from moda_jax.training import devices as devices_lib

WIDTH = 1 / 32  # two channels after the stem
LAYERS = 2 * 4 + 1  # of `shallow`, with a BatchNorm after each convolution


@pytest.fixture
def shallow(monkeypatch):
  """Keeps stem, one block and a last layer: quick to compile."""
  monkeypatch.setattr(resnet, 'BLOCKS', (1, 0, 0, 0))


def init(networks, size=32):
  """Returns variables of extractor and classifier, without compiling."""
  key, x = jax.random.key(0), jnp.zeros((1, size, size, 3))
  z, extractor = jax.eval_shape(networks.extractor.init_with_output, key, x)
  classifier = jax.eval_shape(networks.classifier.init, key, z)
  rng = np.random.default_rng(0)

  def draw(path, leaf):
    positive = path[-1].key in ('scale', 'var')
    drawn = rng.normal(size=leaf.shape) / np.sqrt(np.prod(leaf.shape[:-1]))
    return np.asarray(np.exp(drawn) if positive else drawn, leaf.dtype)

  return jax.tree.map_with_path(draw, (extractor, classifier))


def images(*axes, size=32, seed=0):
  rng = np.random.default_rng(seed)
  return rng.uniform(size=(*axes, size, size, 3)).astype(np.float32)


def in_float64(tree):
  return jax.tree.map(lambda x: np.asarray(x, np.float64), tree)


@pytest.mark.parametrize(
  ('variant', 'published'),
  [('torchvision', 25_557_032), ('v1', 25_636_712 - 2 * 26_560)],
)
def test_the_paper_s_shapes_and_the_published_numbers_of_parameters(
  variant, published
):
  """Keras counts the two running averages of 26,560 channels as well."""
  networks = resnet.create_networks(1000, variant=variant)
  rng, x = jax.random.key(0), jnp.zeros((2, 256, 256, 3))
  z, extractor = jax.eval_shape(networks.extractor.init_with_output, rng, x)
  logits, classifier = jax.eval_shape(
    networks.classifier.init_with_output, rng, z
  )
  domains, _ = jax.eval_shape(networks.discriminator.init_with_output, rng, z)
  assert z.shape == (2, 16, 16, 1024)
  assert (logits.shape, domains.shape) == ((2, 1000), (2, 2))
  trained = jax.tree.leaves((extractor['params'], classifier['params']))
  assert sum(leaf.size for leaf in trained) == published
  averages = jax.tree.leaves(
    (extractor['batch_stats'], classifier['batch_stats'])
  )
  assert sum(leaf.size for leaf in averages) == 2 * 26_560


def test_an_unknown_variant_is_refused():
  with pytest.raises(
    UserError, match=r"'v2' is unknown; allowed .* v1, v1_old\."
  ):
    resnet.create_networks(31, variant='v2')


def test_groups_are_like_separate_forward_passes(shallow):
  networks = resnet.create_networks(3, WIDTH)
  variables, x = in_float64((init(networks)[0], images(3, 4)))
  apply = jax.jit(
    functools.partial(
      networks.extractor.apply, train=True, mutable=['batch_stats']
    )
  )
  with jax.enable_x64(True):
    together, after = apply(variables, x)
    for group, found in zip(x, together, strict=True):
      alone, updated = apply(variables, group[None])
      closeness.assert_close(found, alone[0], depth=LAYERS)
      variables = variables | updated
    closeness.assert_close(after, updated, depth=LAYERS)


def test_evaluation_looks_at_one_image_at_a_time(shallow):
  networks = resnet.create_networks(3, WIDTH)
  extractor, classifier = in_float64(init(networks))

  @jax.jit
  def evaluate(x):
    z = networks.extractor.apply(extractor, x)
    return networks.classifier.apply(classifier, z)

  with jax.enable_x64(True):
    x = in_float64(images(4))
    expected = np.stack([evaluate(image[None])[0] for image in x])
    closeness.assert_close(evaluate(x), expected, depth=LAYERS)
    grouped = evaluate(x.reshape(2, 2, 32, 32, 3)).reshape(4, 3)
    closeness.assert_close(grouped, expected, depth=LAYERS)


def test_eight_devices_equal_one_in_float64(shallow):
  """Outputs, gradients and averages of a loss over whole groups."""
  with jax.enable_x64(True):
    one, eight = (run_on(devices) for devices in (1, 8))
    closeness.assert_close(one, eight, depth=2 * LAYERS)


def run_on(devices):
  axis_name = devices_lib.axis_name(devices)
  networks = resnet.create_networks(3, WIDTH, axis_name=axis_name)
  variables = init(networks)
  variables = jax.tree.map(lambda v: jnp.asarray(v, jnp.float64), variables)
  params = [v['params'] for v in variables]

  def loss(params, x):
    outputs, stats = x, []
    for module, own, held in zip(networks, params, variables, strict=False):
      outputs, updated = module.apply(
        {**held, 'params': own}, outputs, train=True, mutable=['batch_stats']
      )
      stats.append(updated)
    value = (outputs * jnp.arange(1.0, 4)).mean(axis=1)  # [G, 3]
    if axis_name is not None:
      value = jax.lax.pmean(value, axis_name)
    return (value**2).sum(), stats

  def step(params, batch):
    (value, stats), grads = jax.value_and_grad(loss, has_aux=True)(
      params, batch['source']['x']
    )
    if axis_name is not None:
      grads, stats = jax.lax.pmean((grads, stats), axis_name)
    return value, stats, grads

  batch = {'source': {'x': images(2, 16).astype(np.float64)}, 'target': {}}
  if devices > 1:
    batch = devices_lib.split_over_devices(batch, devices)
  return jax.device_get(devices_lib.compile_step(step, devices)(params, batch))


def run_training(networks, variables, x):
  """Returns logits, new averages and gradients of extractor and classifier."""

  @jax.jit
  def run(variables):
    def loss(variables):
      outputs, stats = x, []
      for module, held in zip(networks, variables, strict=False):
        outputs, updated = module.apply(
          held, outputs, train=True, mutable=['batch_stats']
        )
        stats.append(updated)
      return (outputs**2).mean(), (outputs, stats)

    return jax.grad(loss, has_aux=True)(variables)

  grads, (outputs, stats) = run(variables)
  return outputs, stats, [g['params'] for g in grads]


@pytest.mark.parametrize('remat', [False, True])
def test_remat_computes_blocks_anew(shallow, remat):
  networks = resnet.create_networks(3, WIDTH, remat=remat)
  variables, _ = init(networks)
  program = jax.make_jaxpr(
    jax.grad(lambda v: networks.extractor.apply(v, images(2)).sum())
  )(variables)
  assert ('remat' in str(program) or 'checkpoint' in str(program)) == remat


def test_remat_changes_no_number(shallow):
  plain = resnet.create_networks(3, WIDTH)
  variables, x = in_float64((init(plain), images(2, 8)))
  frugal = resnet.create_networks(3, WIDTH, remat=True)
  with jax.enable_x64(True):
    expected = run_training(plain, variables, x)
    found = run_training(frugal, variables, x)
  closeness.assert_close(found, expected, depth=2 * LAYERS)


@pytest.mark.slow
def test_bfloat16_keeps_parameters_statistics_and_logits_in_float32(shallow):
  x = images(2, 8)
  networks = resnet.create_networks(3, WIDTH, dtype='bfloat16')
  variables = init(networks)
  outputs, stats, grads = run_training(networks, variables, x)
  kept = jax.tree.leaves((variables, outputs, stats, grads))
  assert {leaf.dtype for leaf in kept} == {jnp.dtype('float32')}
  z = jax.eval_shape(networks.extractor.apply, variables[0], x)
  assert z.dtype == jnp.bfloat16
  exact, _, _ = run_training(resnet.create_networks(3, WIDTH), variables, x)
  error = np.abs(outputs - exact).max() / np.abs(exact).max()
  assert 0 < error < 0.1


@pytest.mark.parametrize('repeated', [False, True])
@pytest.mark.parametrize('size', [(8, 6), (7, 9), (1, 2)])
def test_pooling_is_max_pooling_with_its_gradient(size, repeated):
  """Also among equal values, as flat pictures have them."""
  rng = np.random.default_rng(0)
  shape = (2, *size, 5)
  x = rng.integers(0, 3, shape) if repeated else rng.normal(size=shape)
  x = jnp.asarray(x, jnp.float32)

  def flax_pool(x):
    return nn.max_pool(x, (3, 3), strides=(2, 2), padding=((1, 1), (1, 1)))

  found, pull_back = jax.vjp(resnet._pool, x)
  expected, pull_back_flax = jax.vjp(flax_pool, x)
  np.testing.assert_array_equal(found, expected)
  # Whole numbers, for windows overlap and their gradients are added.
  weights = jnp.asarray(rng.integers(-9, 9, found.shape), jnp.float32)
  np.testing.assert_array_equal(pull_back(weights), pull_back_flax(weights))


def test_frozen_stages_keep_weights_and_averages(monkeypatch):
  monkeypatch.setattr(resnet, 'BLOCKS', (1, 1, 0, 0))
  x = images(2, 4)
  networks = resnet.create_networks(3, WIDTH, frozen_stages=1)
  variables = init(networks)
  _, (stats, _), (grads, _) = run_training(networks, variables, x)
  moved = {
    name: any(np.any(leaf) for leaf in jax.tree.leaves(tree))
    for name, tree in grads.items()
  }
  frozen = ('conv_stem', 'norm_stem', 'stage1')
  assert moved == dict.fromkeys(frozen, False) | {'stage2': True}
  before, after = variables[0]['batch_stats'], stats['batch_stats']
  for name in ('norm_stem', 'stage1'):
    jax.tree.map(np.testing.assert_array_equal, after[name], before[name])
  for old, new in zip(
    jax.tree.leaves(before['stage2']),
    jax.tree.leaves(after['stage2']),
    strict=True,
  ):
    assert np.all(old != new)
