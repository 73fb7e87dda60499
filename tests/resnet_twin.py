"""ResNet-50 in NumPy, straight from arrays as published files name them.

Also makes such arrays up, for networks that are narrower than the real one.
"""

import numpy as np

BLOCKS = (3, 4, 6, 3)


def conv(x, kernel, stride, padding):
  """Convolves `[N, H, W, C]` with `[K, K, C, D]`."""
  size = kernel.shape[0]
  x = np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
  windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), (1, 2))
  windows = windows[:, ::stride, ::stride]  # [N, H, W, C, K, K]
  return np.einsum('nhwcij,ijcd->nhwd', windows, kernel, optimize=True)


def max_pool(x):
  pad = ((0, 0), (1, 1), (1, 1), (0, 0))
  x = np.pad(x, pad, constant_values=-np.inf)
  windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))
  return windows[:, ::2, ::2].max((-1, -2))


def relu(x):
  return np.maximum(x, 0)


def torchvision_logits(arrays, images):
  """Runs torchvision's forward pass for images `[N, H, W, 3]` in 0..1."""
  arrays = {k: v.astype(np.float64) for k, v in arrays.items()}

  def layer(x, name, norm, stride=1):
    kernel = arrays[f'{name}.weight']  # [out, in, H, W]
    padding = kernel.shape[-1] // 2
    x = conv(x, kernel.transpose(2, 3, 1, 0), stride, padding)
    x = (x - arrays[f'{norm}.running_mean']) / np.sqrt(
      arrays[f'{norm}.running_var'] + 1e-5
    )
    return x * arrays[f'{norm}.weight'] + arrays[f'{norm}.bias']

  x = (images - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
  x = max_pool(relu(layer(x, 'conv1', 'bn1', 2)))
  for stage, blocks in enumerate(BLOCKS, 1):
    for i in range(blocks):
      stride = 2 if stage > 1 and i == 0 else 1
      block = f'layer{stage}.{i}'
      y = relu(layer(x, f'{block}.conv1', f'{block}.bn1'))
      y = relu(layer(y, f'{block}.conv2', f'{block}.bn2', stride))
      y = layer(y, f'{block}.conv3', f'{block}.bn3')
      if i == 0:
        down = f'{block}.downsample'
        x = layer(x, f'{down}.0', f'{down}.1', stride)
      x = relu(x + y)
  return x.mean((1, 2)) @ arrays['fc.weight'].T + arrays['fc.bias']


def keras_logits(arrays, images, epsilon):
  """Runs Keras's forward pass for images `[N, H, W, 3]` in 0..1."""
  arrays = {k: v.astype(np.float64) for k, v in arrays.items()}

  def layer(x, name, stride=1):
    kernel = arrays[f'{name}_conv/kernel']
    x = conv(x, kernel, stride, kernel.shape[0] // 2)
    x = x + arrays[f'{name}_conv/bias']
    x = (x - arrays[f'{name}_bn/moving_mean']) / np.sqrt(
      arrays[f'{name}_bn/moving_variance'] + epsilon
    )
    return x * arrays[f'{name}_bn/gamma'] + arrays[f'{name}_bn/beta']

  x = 255 * images[..., [2, 1, 0]] - [103.939, 116.779, 123.68]
  x = max_pool(relu(layer(x, 'conv1', 2)))
  for stage, blocks in enumerate(BLOCKS, 2):
    for i in range(1, blocks + 1):
      stride = 2 if stage > 2 and i == 1 else 1
      block = f'conv{stage}_block{i}'
      y = relu(layer(x, f'{block}_1', stride))
      y = relu(layer(y, f'{block}_2'))
      y = layer(y, f'{block}_3')
      if i == 1:
        x = layer(x, f'{block}_0', stride)
      x = relu(x + y)
  return (
    x.mean((1, 2)) @ arrays['predictions/kernel'] + arrays['predictions/bias']
  )


def torchvision_arrays(stem=2, classes=7):
  """Returns a state dict with `stem` channels where ResNet-50 has 64."""
  make, arrays = _Random(), {}

  def add(conv_name, norm_name, size, inputs, outputs):
    shape = (outputs, inputs, size, size)
    arrays[f'{conv_name}.weight'] = make.kernel(shape, inputs * size**2)
    for kind, array in zip(
      ('weight', 'bias', 'running_mean', 'running_var'),
      make.norm(outputs),
      strict=True,
    ):
      arrays[f'{norm_name}.{kind}'] = array
    arrays[f'{norm_name}.num_batches_tracked'] = np.array(5)

  add('conv1', 'bn1', 7, 3, stem)
  inputs = stem
  for stage, blocks in enumerate(BLOCKS, 1):
    features = stem * 2 ** (stage - 1)
    for i in range(blocks):
      block = f'layer{stage}.{i}'
      add(f'{block}.conv1', f'{block}.bn1', 1, inputs, features)
      add(f'{block}.conv2', f'{block}.bn2', 3, features, features)
      add(f'{block}.conv3', f'{block}.bn3', 1, features, 4 * features)
      if i == 0:
        down = f'{block}.downsample'
        add(f'{down}.0', f'{down}.1', 1, inputs, 4 * features)
      inputs = 4 * features
  arrays['fc.weight'] = make.kernel((classes, inputs), inputs)
  arrays['fc.bias'] = make.kernel((classes,), 1)
  return arrays


def keras_arrays(stem=2, classes=7):
  """Returns the weights of Keras's layers, 'layer/array', equally narrow."""
  make, arrays = _Random(), {}

  def add(name, size, inputs, outputs):
    shape = (size, size, inputs, outputs)
    arrays[f'{name}_conv/kernel'] = make.kernel(shape, inputs * size**2)
    arrays[f'{name}_conv/bias'] = make.kernel((outputs,), 10)
    for kind, array in zip(
      ('gamma', 'beta', 'moving_mean', 'moving_variance'),
      make.norm(outputs),
      strict=True,
    ):
      arrays[f'{name}_bn/{kind}'] = array

  add('conv1', 7, 3, stem)
  inputs = stem
  for stage, blocks in enumerate(BLOCKS, 2):
    features = stem * 2 ** (stage - 2)
    for i in range(1, blocks + 1):
      block = f'conv{stage}_block{i}'
      if i == 1:
        add(f'{block}_0', 1, inputs, 4 * features)
      add(f'{block}_1', 1, inputs, features)
      add(f'{block}_2', 3, features, features)
      add(f'{block}_3', 1, features, 4 * features)
      inputs = 4 * features
  arrays['predictions/kernel'] = make.kernel((inputs, classes), inputs)
  arrays['predictions/bias'] = make.kernel((classes,), 1)
  return arrays


def old_keras_name(name):
  """Returns what Keras called a layer's array before it numbered blocks."""
  layer, array = name.split('/')
  if layer == 'predictions':
    return f'fc1000/{array}'
  if layer.startswith('conv1_'):
    return {'conv1_conv': 'conv1', 'conv1_bn': 'bn_conv1'}[layer] + f'/{array}'
  stage, block, number, kind = layer.split('_')
  branch = {'0': '1', '1': '2a', '2': '2b', '3': '2c'}[number]
  letter = ' abcdef'[int(block.removeprefix('block'))]
  start = {'conv': 'res', 'bn': 'bn'}[kind]
  return f'{start}{stage.removeprefix("conv")}{letter}_branch{branch}/{array}'


class _Random:
  """Draws float32 arrays that keep activations in range."""

  def __init__(self):
    self._rng = np.random.default_rng(0)

  def kernel(self, shape, fan_in):
    drawn = self._rng.normal(size=shape) / np.sqrt(fan_in)
    return drawn.astype(np.float32)

  def norm(self, size):
    rng = self._rng
    drawn = (
      rng.uniform(0.5, 1.5, size),
      rng.normal(size=size),
      rng.normal(size=size),
      rng.uniform(0.2, 2.0, size),
    )
    return [array.astype(np.float32) for array in drawn]
