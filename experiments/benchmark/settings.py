"""What is measured: configs by their arguments, and random data to fit.

All that the benchmark knows about configs is in this file.
"""

from typing import Any, NamedTuple

import ml_collections
import numpy as np
import scipy.sparse

import moda_jax
from moda_jax.config import full_name
from moda_jax.data.domains import Domain, Domains

_CLASSES = {'digits': 10, 'reviews': 2, 'office31': 31}
_FEATURES, _WORDS = 5000, 80  # known; in a review
_ENDLESS = 2**30
# Every term of the loss counts, and nothing is left to chance.
CHECKED = 'tau=0,mu_d=0.5,mu_s=0.2,mu_c=0.5'
_NO_DROPOUT = 'dropout_min=0,dropout_max=0'


class Case(NamedTuple):
  """A training step that is measured.

  Attributes:
    title: as in tables.
    family: a module of `configs`.
    argument: its argument.
    examples: how many random ones each domain has.
    steps: of one turn.
  """

  title: str
  family: str
  argument: str
  examples: int = 256
  steps: int = 20

  @property
  def config(self) -> ml_collections.ConfigDict:
    """The config, of a run without end."""
    return make_config(self.family, self.argument)

  @property
  def checked_config(self) -> ml_collections.ConfigDict:
    """The same with values at which gradients are compared."""
    argument = f'{self.argument},{CHECKED}'
    if self.family == 'reviews':
      argument = f'{argument},{_NO_DROPOUT}'
    return make_config(self.family, argument)


CASES = {
  'digits': Case('digits, full width, batch 8', 'digits', 'mnistm'),
  'digits_quarter': Case(
    'digits, quarter width, batch 8', 'digits', 'mnistm,width=0.25', steps=60
  ),
  'digits_batch_64': Case(
    'digits, full width, batch 64',
    'digits',
    'mnistm,batch_size=64',
    steps=3,
  ),
  'reviews': Case('reviews, batch 20', 'reviews', 'books', 500, 30),
  'office31_128': Case(
    'Office-31, ResNet-50, 128 px, batch 8',
    'office31',
    'webcam,pretrained=,image_size=128',
    32,
    1,
  ),
  'office31_256': Case(
    'Office-31, ResNet-50, 256 px, batch 8',
    'office31',
    'webcam,pretrained=',
    32,
    1,
  ),
}


def make_config(
  family: str, argument: str, sources: int | None = None
) -> ml_collections.ConfigDict:
  """Returns a config of a run without end.

  Args:
    family: a module of `configs`.
    argument: what its `get_config` takes.
    sources: how many made-up ones to use instead of the config's own.
  """
  all_examples = 'samples=0,evaluate_on=target'
  config = moda_jax.get_config(
    f'{family}:{argument},steps={_ENDLESS},{all_examples}'
  )
  if sources is not None:
    names = tuple(f'source{i}' for i in range(sources))
    datasets = dict.fromkeys((*names, get(config, 'target')), 'random')
    with config.unlocked():
      config.data.update(sources=names, datasets=datasets)
  return config


def get(config: ml_collections.ConfigDict, name: str) -> Any:
  """Returns the value of a leaf, in whatever section it is."""
  section, leaf = full_name(config, name).split('.')
  return config[section][leaf]


def make_domains(
  config: ml_collections.ConfigDict, family: str, examples: int
) -> Domains:
  """Returns random domains of the config's names, with inputs of its size."""
  rng = np.random.default_rng(0)
  classes = tuple(str(i) for i in range(_CLASSES[family]))
  size = get(config, 'image_size') or 32

  def make(name: str) -> Domain:
    labels = rng.integers(0, len(classes), examples).astype(np.int32)
    if family == 'reviews':
      words = rng.poisson(_WORDS / _FEATURES, (examples, _FEATURES))
      inputs = scipy.sparse.csr_array(words.astype(np.float32))
    else:
      inputs = make_images(size, examples, rng)
    return Domain(name, 'random', inputs, labels, classes)

  target = make(get(config, 'target'))
  sources = tuple(make(name) for name in get(config, 'sources'))
  return Domains(sources, target, target)


def make_images(size: int, count: int, rng: np.random.Generator) -> np.ndarray:
  """Returns smooth images with some noise, `[count, size, size, 3]` bytes."""
  coarse = rng.integers(30, 220, (count, size // 8, size // 8, 3))
  smooth = coarse.repeat(8, axis=1).repeat(8, axis=2)
  noisy = smooth + rng.normal(0, 9, smooth.shape)
  return np.clip(noisy, 0, 255).astype(np.uint8)


def describe_for_twin(
  config: ml_collections.ConfigDict, domains: Domains
) -> dict[str, Any]:
  """Returns what a twin must know, for JSON."""
  values = {
    name: get(config, name)
    for name in (
      'width',
      'batch_size',
      'mu_d',
      'mu_s',
      'mu_c',
      'tau',
      'learning_rate',
      'beta_rate',
    )
  }
  return values | {
    'network': config.network.name,
    'num_classes': domains.num_classes,
    'sources': len(domains.sources),
    'input': list(domains.target.inputs.shape[1:]),
    'rho': get(config, 'rho'),
    'eps': get(config, 'adadelta_eps'),
    'rates': [list(pair) for pair in get(config, 'rate_multipliers')],
    'dropout': [get(config, 'dropout_min'), get(config, 'dropout_max')],
    'magnitudes': [
      get(config, 'randaugment_min'),
      get(config, 'randaugment_max'),
    ],
    'exclude': list(get(config, 'randaugment_exclude')),
    'weak': {
      'rotation': get(config, 'weak_rotation'),
      'translation': get(config, 'weak_translation'),
      'flip': get(config, 'weak_flip'),
    },
  }
