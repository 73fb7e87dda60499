"""The sizes at which each experiment can be run, by name.

`paper` is the paper's setting, and `regenerated` is that of digits with
SynthDigits regenerated, since the original is nowhere to be had. `small` is
what a CPU core trains in hours, and `tiny` takes seconds and shows only that
everything works: its figures mean nothing. What a scale changes is in
`SETTINGS`, and its description is part of every output.
"""

import types
from collections.abc import Mapping
from typing import NamedTuple

from moda_jax.errors import UserError

EXPERIMENTS = ('digits', 'office31', 'reviews')
SCALES = ('paper', 'regenerated', 'small', 'features', 'tiny')


class Setting(NamedTuple):
  """An experiment at a scale.

  Attributes:
    experiment: its name, that of the tables and files.
    scale: the name of the scale.
    config: the name of the config file.
    targets: the domains that are the target in turn, as in the paper.
    description: what is trained, in a few words.
    length: how long, where nothing else is said.
    values: what differs from the config file, by short name.
    datasets: what serves some domains instead of the config's data sets.
    has_published: whether the paper's figures belong beside its own.
  """

  experiment: str
  scale: str
  config: str
  targets: tuple[str, ...]
  description: str
  length: str
  values: Mapping[str, object] = types.MappingProxyType({})
  datasets: Mapping[str, str] = types.MappingProxyType({})
  has_published: bool = True

  @property
  def name(self) -> str:
    """The name of the files of results."""
    return f'{self.experiment}_{self.scale}'

  @property
  def title(self) -> str:
    """The scale and what it means, for every output."""
    return self.title_with(self.length)

  def title_with(self, length: str) -> str:
    """Returns the title of runs of another length."""
    what = f'{self.experiment}, scale {self.scale}: {self.description}'
    return f'{what}, {length}'


_DIGITS = ('mnist', 'mnistm', 'svhn')
_OFFICE31 = ('amazon', 'dslr', 'webcam')
_REVIEWS = ('books', 'dvd', 'electronics', 'kitchen')
_TINY_STEPS = {
  'steps': 6,
  'log_every': 1,
  'eval_every': 1,
  'checkpoint_every': 2,
}

_REGENERATED = types.MappingProxyType({'synth': 'synth_digits/regenerated'})

_ALL = (
  Setting(
    'digits',
    'paper',
    'digits',
    _DIGITS,
    'full width, 20,000 images per domain',
    '30 epochs',
  ),
  Setting(
    'digits',
    'regenerated',
    'digits',
    _DIGITS,
    'full width, 20,000 images per domain, SynthDigits regenerated',
    '30 epochs',
    datasets=_REGENERATED,
  ),
  Setting(
    'digits',
    'small',
    'digits',
    _DIGITS,
    'quarter width, 20,000 images per domain, SynthDigits regenerated',
    '30 epochs',
    {'width': 0.25},
    _REGENERATED,
  ),
  Setting(
    'digits',
    'tiny',
    'mini',
    ('mnist', 'mnistm'),
    'a trial of the program on mini digits, not a result',
    'six steps',
    {'width': 0.0625, 'batch_size': 8, **_TINY_STEPS},
    has_published=False,
  ),
  Setting(
    'office31',
    'paper',
    'office31',
    _OFFICE31,
    'ResNet-50 at 256 × 256',
    '15 epochs',
  ),
  Setting(
    'office31',
    'small',
    'office31_shrunk',
    _OFFICE31,
    'images of 128 × 128, ResNet-50 frozen up to stage 2',
    '300 steps',
  ),
  Setting(
    'office31',
    'features',
    'office31',
    _OFFICE31,
    'dense networks on features of a frozen ResNet-50 at 128 × 128',
    '15 epochs',
    {'network': 'features', 'image_size': 128},
  ),
  Setting(
    'office31',
    'tiny',
    'office31_shrunk',
    _OFFICE31,
    'a trial of the program at 64 × 64 from random weights, not a result',
    'six steps',
    {'pretrained': '', 'image_size': 64, **_TINY_STEPS},
    has_published=False,
  ),
  Setting(
    'reviews',
    'paper',
    'reviews',
    _REVIEWS,
    'full width, 2,000 reviews per domain',
    '15 epochs',
  ),
  Setting(
    'reviews',
    'small',
    'reviews',
    _REVIEWS,
    'quarter width, 2,000 reviews per domain',
    '15 epochs',
    {'width': 0.25},
  ),
  Setting(
    'reviews',
    'tiny',
    'reviews',
    _REVIEWS,
    'a trial of the program at a hundredth of the width, not a result',
    'six steps',
    {'width': 0.01, **_TINY_STEPS},
    has_published=False,
  ),
)
SETTINGS = {(s.experiment, s.scale): s for s in _ALL}


def find_setting(experiment: str, scale: str) -> Setting:
  """Returns an experiment at a scale; refuses a pair that there is not."""
  if (experiment, scale) not in SETTINGS:
    known = [b for a, b in SETTINGS if a == experiment]
    raise UserError(
      f'--scale={scale}: {experiment} has the scales {", ".join(known)}.'
    )
  return SETTINGS[experiment, scale]
