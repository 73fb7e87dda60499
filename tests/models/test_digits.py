import closeness
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from moda_jax.errors import UserError
from moda_jax.models import digits


def shapes(module, x):
  variables = jax.eval_shape(module.init, jax.random.key(0), x)
  return jax.tree.map(lambda p: p.shape, variables['params'])


def test_the_paper_s_layers():
  networks = digits.create_networks(10)
  x = jnp.zeros((2, 32, 32, 3))
  z = jnp.zeros((2, 8, 8, 256))
  kernels = [
    [layer['kernel'] for layer in shapes(module, inputs).values()]
    for module, inputs in zip(networks[:3], (x, z, z), strict=True)
  ]
  assert kernels == [
    [(3, 3, 3, 64), (3, 3, 64, 128), (3, 3, 128, 256)],
    [(3, 3, 256, 256), (4096, 2048), (2048, 1024), (1024, 10)],
    [(4096, 2048), (2048, 2048), (2048, 1024), (1024, 2)],
  ]


def test_a_width_that_leaves_nothing_is_refused():
  networks = digits.create_networks(10, width=1e-3)
  message = 'width = 0.001 leaves nothing of a layer of 64; .* above 0.0078125'
  with pytest.raises(UserError, match=message):
    jax.eval_shape(
      networks.extractor.init, jax.random.key(0), jnp.zeros((1, 32, 32, 3))
    )


def test_width_scales_hidden_layers_only():
  networks = digits.create_networks(10, width=0.25)
  kernels = [
    layer['kernel']
    for layer in shapes(networks.classifier, jnp.zeros((2, 8, 8, 64))).values()
  ]
  assert kernels == [(3, 3, 64, 64), (1024, 512), (512, 256), (256, 10)]


@pytest.mark.slow
def test_groups_are_like_separate_batches():
  module = digits.Extractor(0.05)
  with jax.enable_x64(True):
    x = jax.random.uniform(jax.random.key(1), (3, 4, 32, 32, 3))
    params = module.init(jax.random.key(0), x[0])
    together = module.apply(params, x)
    apart = np.stack([module.apply(params, group) for group in x])
    assert together.dtype == np.float64
    closeness.assert_close(together, apart, depth=3)


@pytest.mark.parametrize('size', [(8, 8), (5, 7), (1, 2)])
def test_convolution_is_that_of_xla_with_its_gradient(size):
  rng = np.random.default_rng(0)
  with jax.enable_x64(True):
    x, kernel = rng.normal(size=(2, *size, 3)), rng.normal(size=(3, 3, 3, 4))

    def convolve(x, kernel):
      names = ('NHWC', 'HWIO', 'NHWC')
      return jax.lax.conv_general_dilated(
        x, kernel, (1, 1), 'SAME', dimension_numbers=names
      )

    found, pull_back = jax.vjp(digits._multiply_patches, x, kernel)
    expected, pull_back_xla = jax.vjp(convolve, x, kernel)
    closeness.assert_close(found, expected, depth=1)
    weights = rng.normal(size=found.shape)
    slopes, slopes_xla = pull_back(weights), pull_back_xla(weights)
    closeness.assert_close(slopes, slopes_xla, depth=1)


def test_accelerators_convolve_by_xla():
  module = digits.Extractor(0.05)
  x = jnp.zeros((2, 32, 32, 3))
  params = module.init(jax.random.key(0), x)
  exported = jax.export.export(jax.jit(module.apply), platforms=['cuda'])
  program = exported(params, x).mlir_module()
  assert program.count('stablehlo.convolution') == 3
  assert 'stablehlo.dot' not in program


@pytest.mark.parametrize('platform', ['cuda', 'tpu'])
def test_accelerators_pool_by_xla(platform):
  def loss(x):
    return digits._pool(x).sum()

  exported = jax.export.export(jax.jit(jax.grad(loss)), platforms=[platform])
  program = exported(jnp.zeros((2, 8, 8, 3))).mlir_module()
  assert program.count('stablehlo.select_and_scatter') == 1


@pytest.mark.parametrize('dtype', [jnp.float64, jnp.bfloat16])
def test_gradients_written_out_keep_type_and_copies(dtype):
  """Copies with parameters of their own are like one after the other."""
  rng = np.random.default_rng(0)
  with jax.enable_x64(True):
    x = jnp.asarray(rng.normal(size=(2, 3, 6, 4, 2)), dtype)
    kernel = jnp.asarray(rng.normal(size=(2, 3, 3, 2, 4)), dtype)

    def loss(x, kernel):
      y = digits._pool_quarters(digits._multiply_patches(x, kernel))
      return (y * y).sum()

    grad = jax.grad(loss, argnums=(0, 1))
    together = jax.vmap(grad)(x, kernel)
    for copy in range(2):
      apart = grad(x[copy], kernel[copy])
      for a, b in zip(together, apart, strict=True):
        assert a.dtype == b.dtype == dtype
        np.testing.assert_allclose(
          a[copy].astype(float), b.astype(float), rtol=0.02, atol=1e-12
        )


def test_sizes_that_cannot_be_halved_are_refused():
  with pytest.raises(UserError, match=r'30 × 32.*multiples of 8'):
    digits.Extractor(0.05).init(jax.random.key(0), jnp.zeros((1, 30, 32, 3)))


@pytest.mark.parametrize('repeated', [False, True])
def test_pooling_is_max_pooling_with_its_gradient(repeated):
  """Also among equal values, as flat pictures have them."""
  rng = np.random.default_rng(0)
  x = (
    rng.integers(0, 3, (2, 8, 6, 5))
    if repeated
    else rng.normal(size=(2, 8, 6, 5))
  )
  x = jnp.asarray(x, jnp.float32)
  weights = jnp.asarray(rng.normal(size=(2, 4, 3, 5)), jnp.float32)

  def flax_pool(x):
    return nn.max_pool(x, (2, 2), strides=(2, 2))

  for found, expected in zip(
    jax.vjp(digits._pool, x), jax.vjp(flax_pool, x), strict=True
  ):
    if callable(found):
      found, expected = found(weights)[0], expected(weights)[0]
    np.testing.assert_array_equal(found, expected)


def test_initialisation_is_pytorch_s():
  """Kernels and biases uniform within ±1/sqrt(fan_in)."""
  params = digits.Classifier(10).init(
    jax.random.key(0), jnp.zeros((1, 8, 8, 256))
  )['params']
  for layer in params.values():
    fan_in = np.prod(layer['kernel'].shape[:-1])
    bound = 1 / np.sqrt(fan_in)
    for array in layer.values():
      assert np.abs(array).max() <= np.nextafter(np.float32(bound), 1)
    spread = np.std(layer['kernel']) / (bound / np.sqrt(3))
    assert abs(spread - 1) < 0.02
    assert np.abs(layer['bias']).max() > 0.5 * bound
