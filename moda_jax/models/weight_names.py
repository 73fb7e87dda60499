"""The arrays of ResNet-50 by our names, and as published files name them."""

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from moda_jax.models.resnet import BLOCKS

HEAD = ('head/kernel', 'head/bias')
_NORM = ('params/scale', 'params/bias', 'batch_stats/mean', 'batch_stats/var')

# The convolution and the BatchNorm of stage 1–4, block 0–5 and place 0–2 in
# the block, or of its shortcut, where the place is None.
LayerNames = Callable[[int, int, int | None], tuple[str, str]]


class Scheme(NamedTuple):
  """How a family of files names its arrays.

  Attributes:
    variant: what its networks are like, see `resnet.VARIANTS`.
    separator: what joins the names of a layer and its arrays.
    stem: the first convolution and its BatchNorm.
    layers: those of the blocks.
    heads: what the last layer may be called.
    conv: a convolution's kernel and, if it has one, bias.
    norm: a BatchNorm's scale, bias, mean and variance.
    outputs_first: whether kernels are [out, in, H, W], not [H, W, in, out].
    ignored: the endings of arrays that are not used.
  """

  variant: str
  separator: str
  stem: tuple[str, str]
  layers: LayerNames
  heads: tuple[str, ...]
  conv: tuple[str, ...]
  norm: tuple[str, str, str, str]
  outputs_first: bool = False
  ignored: tuple[str, ...] = ()


def _torch_layers(stage: int, block: int, place: int | None) -> tuple[str, str]:
  start = f'layer{stage}.{block}.'
  if place is None:
    return f'{start}downsample.0', f'{start}downsample.1'
  return f'{start}conv{place + 1}', f'{start}bn{place + 1}'


def _keras_layers(stage: int, block: int, place: int | None) -> tuple[str, str]:
  number = 0 if place is None else place + 1
  start = f'conv{stage + 1}_block{block + 1}_{number}'
  return f'{start}_conv', f'{start}_bn'


def _old_keras_layers(
  stage: int, block: int, place: int | None
) -> tuple[str, str]:
  branch = '1' if place is None else f'2{"abc"[place]}'
  name = f'{stage + 1}{"abcdef"[block]}_branch{branch}'
  return f'res{name}', f'bn{name}'


TORCHVISION = Scheme(
  variant='torchvision',
  separator='.',
  stem=('conv1', 'bn1'),
  layers=_torch_layers,
  heads=('fc',),
  conv=('weight',),
  norm=('weight', 'bias', 'running_mean', 'running_var'),
  outputs_first=True,
  ignored=('.num_batches_tracked',),
)
KERAS = Scheme(
  variant='v1',
  separator='/',
  stem=('conv1_conv', 'conv1_bn'),
  layers=_keras_layers,
  heads=('predictions', 'probs'),
  conv=('kernel', 'bias'),
  norm=('gamma', 'beta', 'moving_mean', 'moving_variance'),
)
OLD_KERAS = KERAS._replace(
  variant='v1_old',
  stem=('conv1', 'bn_conv1'),
  layers=_old_keras_layers,
  heads=('fc1000',),
)
SCHEMES = (TORCHVISION, KERAS, OLD_KERAS)


def find_scheme(names: Collection[str]) -> Scheme | None:
  """Returns the scheme whose first kernel is among a file's arrays."""
  for scheme in SCHEMES:
    if scheme.separator.join((scheme.stem[0], scheme.conv[0])) in names:
      return scheme
  return None


def map_names(scheme: Scheme, names: Collection[str]) -> dict[str, str]:
  """Returns the file's name of every array, by ours.

  Ours are paths in a method's parameters and batch statistics, except that
  stage 4 is on its own: `params/extractor/stage1/block0/conv0/kernel`,
  `batch_stats/stage4/block0/norm0/mean`.

  Args:
    scheme: the file's.
    names: the file's arrays: the last layer is left out if they lack it.
  """
  mapped = {}
  for where, layer, (conv, norm) in _iter_layers(scheme):
    kinds = ('kernel', 'bias')[: len(scheme.conv)]
    for kind, name in zip(kinds, scheme.conv, strict=True):
      mapped[f'params/{where}/conv{layer}/{kind}'] = (
        f'{conv}{scheme.separator}{name}'
      )
    for kind, name in zip(_NORM, scheme.norm, strict=True):
      collection, kind = kind.split('/')
      mapped[f'{collection}/{where}/norm{layer}/{kind}'] = (
        f'{norm}{scheme.separator}{name}'
      )
  for head in scheme.heads:
    kernel, bias = (
      f'{head}{scheme.separator}{name}' for name in (scheme.conv[0], 'bias')
    )
    if kernel in names or bias in names:
      mapped |= dict(zip(HEAD, (kernel, bias), strict=True))
  return mapped


def _iter_layers(scheme: Scheme) -> Iterator[tuple[str, str, tuple[str, str]]]:
  """Yields where we have each convolution, its name there and in the file."""
  yield 'extractor', '_stem', scheme.stem
  for stage, blocks in enumerate(BLOCKS, 1):
    part = 'stage4' if stage == 4 else f'extractor/stage{stage}'
    for block in range(blocks):
      where = f'{part}/block{block}'
      for place in range(3):
        yield where, str(place), scheme.layers(stage, block, place)
      if block == 0:
        yield where, '_shortcut', scheme.layers(stage, block, None)
