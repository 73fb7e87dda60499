"""SDAT's gradients against NumPy, and against methods of fewer terms."""

import closeness
import jax
import numpy as np
import pytest
import tiny

from moda_jax.errors import UserError
from moda_jax.training import options
from moda_jax.training.experiment import Experiment
from moda_jax.training.sharpness import value_and_sharp_grad

RHO = 0.3


@pytest.fixture(autouse=True)
def float64():
  with jax.enable_x64(True):
    yield


class Quadratic:
  """Source losses ½ wᵀ A_j w by the weights 0.3 and 0.7, and b·w² beside."""

  def __init__(self):
    rng = np.random.default_rng(0)
    root = rng.normal(size=(2, 4, 4))
    self.curvature = root @ root.swapaxes(1, 2)
    self.slope = rng.normal(size=4)
    self.weights = np.array([0.3, 0.7])

  def across_devices(self, tree):
    return tree

  def task_losses(self, forward):
    w = forward.params['w']
    return 0.5 * jax.numpy.einsum('i,mij,j->m', w, self.curvature, w)

  def loss(self, forward):
    forward.task_weights = self.weights
    rest = self.slope @ forward.params['w'] ** 2
    return self.weights @ self.task_losses(forward) + rest


def test_a_step_on_quadratic_losses():
  method, w = Quadratic(), np.random.default_rng(1).normal(size=4)
  (loss, _), grads = value_and_sharp_grad(
    method, RHO, {'w': w}, {}, {}, jax.random.key(0), 0
  )
  mean = np.einsum('m,mij->ij', method.weights, method.curvature)
  direction = mean @ w
  moved = w + RHO * direction / np.sqrt(direction @ direction)
  np.testing.assert_allclose(loss, 0.5 * w @ mean @ w + method.slope @ w**2)
  np.testing.assert_allclose(
    grads['w'], mean @ moved + 2 * method.slope * w, rtol=1e-12
  )


def grads_of(method, params, state, batch, weights=None):
  """Returns gradients of the loss, or of class losses by given weights."""

  def loss(params):
    forward_loss, (metrics, _) = method.loss_and_aux(
      params, state, batch, jax.random.key(0), 0
    )
    if weights is None:
      return forward_loss
    classes = [metrics[f'class/{name}'] for name in method.sources]
    return sum(w * c for w, c in zip(weights, classes, strict=True))

  return jax.grad(loss)(params)


@pytest.mark.parametrize('name', ['moda_fm', 'mdan'])
def test_only_the_task_loss_is_sharp(name):
  """The other terms have the gradient that they have without SDAT."""
  method, batch = tiny.make_method(name), tiny.make_batch()
  params, state = tiny.init(method, batch)
  given = (state, batch, jax.random.key(0), 0)
  (_, (metrics, _)), found = value_and_sharp_grad(method, RHO, params, *given)
  if name == 'mdan':  # log-sum-exp: weights are the softmax of what it joins
    joined = [
      metrics[f'class/{s}']
      + 0.3
      * (metrics[f'discriminator/{s}'] + metrics[f'discriminator_target/{s}'])
      for s in method.sources
    ]
    exponents = np.exp(10 * np.array(joined))
    weights = exponents / exponents.sum()
  else:
    weights = [float(metrics[f'alpha/{s}']) for s in method.sources]
  task = grads_of(method, params, state, batch, weights)
  norm = np.sqrt(sum(np.sum(g**2) for g in jax.tree.leaves(task)))
  moved = jax.tree.map(lambda p, g: p + RHO * g / norm, params, task)
  sharp = grads_of(method, moved, state, batch, weights)
  expected = jax.tree.map(
    lambda whole, at, there: whole - at + there,
    grads_of(method, params, state, batch),
    task,
    sharp,
  )
  closeness.assert_close(found, expected, depth=8 * tiny.LAYERS)
  plain = grads_of(method, params, state, batch)
  assert np.any(
    np.abs(
      found['classifier']['Dense_1']['bias']
      - plain['classifier']['Dense_1']['bias']
    )
    > 1e-6
  )
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12),
    found['discriminator'],
    plain['discriminator'],
  )


def test_rho_of_zero_is_the_plain_gradient():
  method, batch = tiny.make_method('moda_fm'), tiny.make_batch()
  params, state = tiny.init(method, batch)
  given = (state, batch, jax.random.key(0), 0)
  _, found = value_and_sharp_grad(method, 0.0, params, *given)
  expected = grads_of(method, params, state, batch)
  closeness.assert_close(found, expected, depth=4 * tiny.LAYERS)


@pytest.mark.parametrize('method', ['supervised', 'dann_ss'])
def test_methods_without_a_task_loss_of_their_own_are_refused(method):
  config = tiny.make_run_config(method=method, sam_rho=0.05)
  with pytest.raises(UserError, match=r'sam_rho = 0.05: .* does not tell'):
    options.check(config)


@pytest.mark.slow
def test_eight_devices_take_the_steps_of_one():
  one, eight = (take_steps(devices) for devices in (1, 8))
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12),
    one,
    eight,
  )


def take_steps(devices):
  config = tiny.make_run_config(sam_rho=0.05, steps=3)
  experiment = Experiment(config, tiny.make_domains(), devices)
  state = jax.tree.map(tiny.in_float64, experiment.initial_state)
  history = []
  for batch in experiment.make_batches(0):
    state, metrics = experiment.train_step(state, batch)
    history.append(jax.device_get(metrics))
  return history, jax.device_get(state.params)
