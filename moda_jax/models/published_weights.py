"""ImageNet weights of ResNet-50: converted once, read, put into networks."""

import hashlib
import os
import pathlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import traverse_util

from moda_jax.errors import UserError
from moda_jax.files import raw_arrays, weight_files
from moda_jax.files.atomic import write_whole
from moda_jax.models import resnet, weight_names

Tree = dict[str, Any]
_VARIANT = 'variant'
_STEM = 'params/extractor/conv_stem/kernel'
_LAST = 'Dense_0'  # of a classifier


class Pretrained(NamedTuple):
  """Weights as `convert_file` wrote them.

  Attributes:
    path: where they were read.
    variant: what the networks must be like, see `resnet.VARIANTS`.
    params: of 'extractor' and 'stage4'.
    batch_stats: of the same.
    head: 'kernel' and 'bias' of the last layer; empty if the file had none.
  """

  path: pathlib.Path
  variant: str
  params: Tree
  batch_stats: Tree
  head: Tree

  def describe(self) -> str:
    """Says which weights these are, whatever their file is called."""
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves((self.params, self.batch_stats)):
      digest.update(np.ascontiguousarray(leaf).tobytes())
    return f'{self.variant}, SHA-256 {digest.hexdigest()[:16]}'


def convert_file(source: str | os.PathLike, out: str | os.PathLike) -> None:
  """Reads published weights and writes them as `.npz` by our names."""
  if not os.fspath(source):
    raise UserError("--from='' names no file; see --help for those read.")
  source, out = pathlib.Path(source), pathlib.Path(out)
  check_out(out)
  variant, arrays = _rename(source, weight_files.read_weights(source))
  _check_shapes(source, variant, arrays)
  saved: dict[str, Any] = arrays | {_VARIANT: np.array(variant)}
  try:
    with write_whole(out, 'wb') as file:
      np.savez(file, **saved)
  except OSError as error:
    raise UserError(f'--out={out} cannot be written: {error}.') from error
  values = sum(array.size for array in arrays.values())
  print(f'{out}: {len(arrays)} arrays, {values:,} values, variant {variant}')


def check_out(out: pathlib.Path) -> None:
  """Refuses a file that cannot be written."""
  if not out.absolute().parent.is_dir():
    raise UserError(f'--out={out}: the folder to write it to is not there.')
  if out.is_dir():
    raise UserError(f'--out={out} is a folder; name a file, such as a.npz.')


def load_pretrained(path: str | os.PathLike) -> Pretrained:
  """Reads what `convert_file` wrote; unpickles nothing."""
  path = pathlib.Path(path)
  names = [name for name in raw_arrays.list_npz(path) if name != _VARIANT]
  if not names:
    raise UserError(
      f'{path} was not written by python -m moda_jax.models.pretrained, which '
      'converts published weights.'
    )
  held = raw_arrays.read_npz(path, [_VARIANT], kinds='U')
  variant = str(held[_VARIANT])
  if variant not in resnet.VARIANTS:
    raise UserError(
      f"{path}: the variant '{variant}' is unknown; allowed are "
      f'{", ".join(resnet.VARIANTS)}.'
    )
  arrays = raw_arrays.read_npz(path, names, kinds='f')
  _check_shapes(path, variant, arrays)
  tree = traverse_util.unflatten_dict(arrays, sep='/')
  return Pretrained(
    path, variant, tree['params'], tree['batch_stats'], tree.get('head', {})
  )


def insert_weights(
  pretrained: Pretrained, params: Tree, state: Tree
) -> tuple[Tree, Tree]:
  """Returns a method's parameters and state with these weights in them.

  The extractor takes its own; every network with a stage 4 takes that, and
  keeps the layer after it. Copies side by side all take the same.

  Args:
    pretrained: the weights.
    params: the method's, of networks of the same variant and width.
    state: the method's.
  """
  params, state = dict(params), dict(state)
  for part, tree in params.items():
    stats = state.get(part, {}).get('batch_stats', {})
    if part == 'extractor':
      tree = _fill(pretrained, 'params', 'extractor', tree)
      stats = _fill(pretrained, 'batch_stats', 'extractor', stats)
    elif isinstance(tree, dict) and 'stage4' in tree:
      stage = _fill(pretrained, 'params', 'stage4', tree['stage4'])
      tree = tree | {'stage4': stage}
      stage = _fill(pretrained, 'batch_stats', 'stage4', stats['stage4'])
      stats = stats | {'stage4': stage}
    else:
      continue
    params[part], state[part] = tree, {'batch_stats': stats}
  return params, state


def imagenet_logits(pretrained: Pretrained, images: jax.Array) -> jax.Array:
  """Returns logits of the weights' own classes for images `[..., H, W, 3]`."""
  if not pretrained.head:
    raise UserError(f'{pretrained.path} lacks the last layer.')
  params, stats, head = pretrained[2:]
  networks = resnet.create_networks(
    len(head['bias']), _width(params['extractor']), pretrained.variant
  )
  features = networks.extractor.apply(
    {'params': params['extractor'], 'batch_stats': stats['extractor']}, images
  )
  variables = {
    'params': {'stage4': params['stage4'], _LAST: head},
    'batch_stats': {'stage4': stats['stage4']},
  }
  logits: Any = networks.classifier.apply(variables, features)
  return logits


def _rename(
  source: pathlib.Path, arrays: weight_files.Arrays
) -> tuple[str, weight_files.Arrays]:
  """Returns the variant, and the arrays by our names and in our layout."""
  scheme = weight_names.find_scheme(arrays)
  if scheme is None:
    raise UserError(
      f'{source} is not a ResNet-50 of torchvision or Keras; its arrays are '
      f'{", ".join(sorted(arrays)[:5])}, …'
    )
  names = weight_names.map_names(scheme, arrays)
  for name in names.values():
    if name not in arrays:
      raise UserError(f'{source} is not a whole ResNet-50: it lacks {name}.')
  unused = sorted(set(arrays) - set(names.values()))
  for name in unused:
    if not name.endswith(scheme.ignored):
      raise UserError(f'{source} is not a ResNet-50: that has no {name}.')
  renamed = {}
  for ours, name in names.items():
    array = arrays[name]
    if array.dtype.kind != 'f':
      raise UserError(f'{source}: {name} is of {array.dtype}, not of floats.')
    if scheme.outputs_first and array.ndim > 1:
      array = np.moveaxis(array, (0, 1), (-1, -2))  # [H, W, in, out]
    renamed[ours] = array.astype(np.float32)
  return scheme.variant, renamed


def _check_shapes(
  path: pathlib.Path, variant: str, arrays: weight_files.Arrays
) -> None:
  """Refuses all but sound arrays of the variant's networks, at any width."""
  stem = np.atleast_1d(arrays.get(_STEM, np.zeros(1)))
  classes = arrays.get('head/bias', np.zeros(1))
  expected = _expected_shapes(variant, stem.shape[-1] / 64, classes.size)
  has_head = any(name in arrays for name in weight_names.HEAD)
  for name, shape in expected.items():
    if name not in arrays:
      if has_head or name not in weight_names.HEAD:
        raise UserError(f'{path} lacks {name}.')
    elif arrays[name].shape != shape:
      raise UserError(
        f'{path}: {name} has the shape {arrays[name].shape}, not {shape}.'
      )
  for name in arrays.keys() - expected.keys():
    raise UserError(f'{path}: {name} does not belong to ResNet-50.')
  for name, array in arrays.items():
    if not np.isfinite(array).all():
      raise UserError(f'{path}: {name} has values that are not finite.')


def _expected_shapes(
  variant: str, width: float, classes: int
) -> dict[str, tuple[int, ...]]:
  networks = resnet.create_networks(classes, width, variant)
  rng, image = jax.random.key(0), jnp.zeros((1, 32, 32, 3))
  features, extractor = jax.eval_shape(
    networks.extractor.init_with_output, rng, image
  )
  classifier = jax.eval_shape(networks.classifier.init, rng, features)
  tree = {
    kind: {
      'extractor': extractor[kind],
      'stage4': classifier[kind]['stage4'],
    }
    for kind in ('params', 'batch_stats')
  }
  tree['head'] = classifier['params'][_LAST]
  flat = traverse_util.flatten_dict(tree, sep='/')
  return {name: leaf.shape for name, leaf in flat.items()}


def _fill(pretrained: Pretrained, kind: str, part: str, tree: Tree) -> Tree:
  """Returns a tree like `tree` of the pretrained arrays."""
  weights = getattr(pretrained, kind)[part]
  weights = traverse_util.flatten_dict(weights, sep='/')
  wanted = traverse_util.flatten_dict(tree, sep='/')
  for name in sorted(weights.keys() ^ wanted.keys()):
    raise UserError(
      f'{pretrained.path} is of the variant {pretrained.variant}, the network '
      f'is another: one of them alone has {kind}/{part}/{name}.'
    )
  for name, leaf in wanted.items():
    array = weights[name]
    if leaf.shape[leaf.ndim - array.ndim :] != array.shape:
      raise UserError(
        f'{pretrained.path}: {kind}/{part}/{name} has the shape '
        f'{array.shape}, the network needs {leaf.shape}.'
      )
    wanted[name] = jnp.broadcast_to(jnp.asarray(array, leaf.dtype), leaf.shape)
  return traverse_util.unflatten_dict(wanted, sep='/')


def _width(extractor: Tree) -> float:
  return extractor['conv_stem']['kernel'].shape[-1] / 64
