"""The paper's networks in PyTorch, with layers called as in our parameters.

Runs in an environment of its own that has PyTorch and neither JAX nor this
project's packages.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_BLOCKS = (3, 4, 6, 3)


class FlattenedLinear(nn.Linear):
  """A layer on flattened maps `[B, C, side, side]`.

  Attributes:
    side: what the order of its weights is told by, see `torch_arrays`.
  """

  def __init__(self, channels: int, side: int, outputs: int):
    super().__init__(channels * side**2, outputs)
    self.side = side

  def forward(self, x: torch.Tensor) -> torch.Tensor:
    """Flattens and multiplies."""
    return super().forward(x.flatten(1))


class DigitsExtractor(nn.Module):
  """Conv 64, pool, conv 128, pool, conv 256."""

  def __init__(self, width: float):
    super().__init__()
    a, b, c = (_scaled(n, width) for n in (64, 128, 256))
    self.Conv_0 = nn.Conv2d(3, a, 3, padding=1)
    self.Conv_1 = nn.Conv2d(a, b, 3, padding=1)
    self.Conv_2 = nn.Conv2d(b, c, 3, padding=1)

  def forward(self, x: torch.Tensor) -> torch.Tensor:
    """Returns features."""
    x = F.max_pool2d(F.relu(self.Conv_0(x)), 2)
    x = F.max_pool2d(F.relu(self.Conv_1(x)), 2)
    return F.relu(self.Conv_2(x))


class DigitsClassifier(nn.Module):
  """Pool, conv 256, dense 2048, 1024, classes."""

  def __init__(self, width: float, num_classes: int, side: int):
    super().__init__()
    channels = _scaled(256, width)
    a, b = _scaled(2048, width), _scaled(1024, width)
    self.Conv_0 = nn.Conv2d(channels, channels, 3, padding=1)
    self.Dense_0 = FlattenedLinear(channels, side, a)
    self.Dense_1 = nn.Linear(a, b)
    self.Dense_2 = nn.Linear(b, num_classes)

  def forward(self, x: torch.Tensor) -> torch.Tensor:
    """Returns class logits."""
    x = F.relu(self.Conv_0(F.max_pool2d(x, 2)))
    x = F.relu(self.Dense_1(F.relu(self.Dense_0(x))))
    return self.Dense_2(x)


class DigitsDiscriminator(nn.Module):
  """Pool, dense 2048, 2048, 1024, 2."""

  def __init__(self, width: float, side: int):
    super().__init__()
    a, b = _scaled(2048, width), _scaled(1024, width)
    self.Dense_0 = FlattenedLinear(_scaled(256, width), side, a)
    self.Dense_1 = nn.Linear(a, a)
    self.Dense_2 = nn.Linear(a, b)
    self.Dense_3 = nn.Linear(b, 2)

  def forward(self, x: torch.Tensor) -> torch.Tensor:
    """Returns domain logits."""
    x = F.relu(self.Dense_0(F.max_pool2d(x, 2)))
    return self.Dense_3(F.relu(self.Dense_2(F.relu(self.Dense_1(x)))))


class ReviewsExtractor(nn.Module):
  """Dense 1000, 500, 100 with dropout before each and at the end."""

  def __init__(self, features: int, width: float):
    super().__init__()
    a, b, c = (_scaled(n, width) for n in (1000, 500, 100))
    self.Dense_0 = nn.Linear(features, a)
    self.Dense_1 = nn.Linear(a, b)
    self.Dense_2 = nn.Linear(b, c)

  def forward(self, x: torch.Tensor, rate: float = 0.0) -> torch.Tensor:
    """Returns features; at rate 0 nothing is dropped."""
    for layer in (self.Dense_0, self.Dense_1, self.Dense_2):
      x = F.relu(layer(F.dropout(x, rate)))
    return F.dropout(x, rate)


class Linear(nn.Module):
  """One layer."""

  def __init__(self, inputs: int, outputs: int):
    super().__init__()
    self.Dense_0 = nn.Linear(inputs, outputs)

  def forward(self, x: torch.Tensor) -> torch.Tensor:
    """Returns logits."""
    return self.Dense_0(x)


class Bottleneck(nn.Module):
  """1 × 1, 3 × 3 and 1 × 1 convolutions around a shortcut."""

  def __init__(self, inputs: int, features: int, stride: int):
    super().__init__()
    outputs = 4 * features
    self.conv0 = nn.Conv2d(inputs, features, 1, bias=False)
    self.norm0 = nn.BatchNorm2d(features)
    self.conv1 = nn.Conv2d(features, features, 3, stride, 1, bias=False)
    self.norm1 = nn.BatchNorm2d(features)
    self.conv2 = nn.Conv2d(features, outputs, 1, bias=False)
    self.norm2 = nn.BatchNorm2d(outputs)
    self.has_shortcut = stride > 1 or inputs != outputs
    if self.has_shortcut:
      self.conv_shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
      self.norm_shortcut = nn.BatchNorm2d(outputs)

  def forward(self, x: torch.Tensor) -> torch.Tensor:
    """Returns the block's output."""
    y = F.relu(self.norm0(self.conv0(x)))
    y = F.relu(self.norm1(self.conv1(y)))
    y = self.norm2(self.conv2(y))
    if self.has_shortcut:
      x = self.norm_shortcut(self.conv_shortcut(x))
    return F.relu(x + y)


def _stage(number: int, width: float) -> nn.Sequential:
  """Returns stage 1–4 of ResNet-50, which is conv2_x to conv5_x."""
  features = _scaled(32 * 2**number, width)
  before = _scaled(16 * 2**number, width)  # of the stage before
  inputs = _scaled(64, width) if number == 1 else 4 * before
  blocks = nn.Sequential()
  for i in range(_BLOCKS[number - 1]):
    stride = 2 if i == 0 and number > 1 else 1
    block = Bottleneck(4 * features if i else inputs, features, stride)
    blocks.add_module(f'block{i}', block)
  return blocks


class ResNetExtractor(nn.Module):
  """ResNet-50 up to stage 3."""

  def __init__(self, width: float):
    super().__init__()
    channels = _scaled(64, width)
    self.conv_stem = nn.Conv2d(3, channels, 7, 2, 3, bias=False)
    self.norm_stem = nn.BatchNorm2d(channels)
    self.stage1 = _stage(1, width)
    self.stage2 = _stage(2, width)
    self.stage3 = _stage(3, width)

  def forward(self, x: torch.Tensor) -> torch.Tensor:
    """Returns features."""
    # Not buffers: rounded to float32 they would differ in float64.
    mean, std = (x.new_tensor(v).view(1, 3, 1, 1) for v in (_MEAN, _STD))
    x = F.relu(self.norm_stem(self.conv_stem((x - mean) / std)))
    return self.stage3(self.stage2(self.stage1(F.max_pool2d(x, 3, 2, 1))))


class ResNetHead(nn.Module):
  """Stage 4, the average over space, one layer."""

  def __init__(self, outputs: int, width: float):
    super().__init__()
    self.stage4 = _stage(4, width)
    self.Dense_0 = nn.Linear(4 * _scaled(512, width), outputs)

  def forward(self, x: torch.Tensor) -> torch.Tensor:
    """Returns logits."""
    return self.Dense_0(self.stage4(x).mean((2, 3)))


class Networks(nn.Module):
  """Extractor, classifier, discriminator and β of one experiment.

  Attributes:
    has_batch_norm: whether domains must pass one after the other.
    has_dropout: whether the strong view is made within the extractor.
  """

  def __init__(self, setting: dict[str, Any]):
    super().__init__()
    kind, classes = setting['network'], setting['num_classes']
    width = setting['width']
    self.has_batch_norm = kind == 'resnet50'
    self.has_dropout = kind == 'reviews'
    if kind == 'digits':
      side = setting['input'][0] // 8
      self.extractor = DigitsExtractor(width)
      self.classifier = DigitsClassifier(width, classes, side)
      self.discriminator = DigitsDiscriminator(width, side)
    elif kind == 'reviews':
      features = _scaled(100, width)
      self.extractor = ReviewsExtractor(setting['input'][0], width)
      self.classifier = Linear(features, classes)
      self.discriminator = Linear(features, 2)
    elif kind == 'resnet50':
      self.extractor = ResNetExtractor(width)
      self.classifier = ResNetHead(classes, width)
      self.discriminator = ResNetHead(2, width)
    else:
      raise ValueError(f'no twin of the network {kind!r}')
    self.beta = nn.Parameter(torch.rand(setting['sources']))


def _scaled(features: int, width: float) -> int:
  return max(1, round(features * width))
