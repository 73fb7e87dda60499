"""Options of the data and of its views."""

import dataclasses
from typing import Any

from moda_jax.config import check_names, not_allowed, option
from moda_jax.errors import UserError

LEARNED = 'learned'  # the strong view whose magnitudes are
FIT = -1  # what a value is until the data is known
AUTO = 'auto'  # and what a name is


@dataclasses.dataclass(frozen=True)
class DataOptions:
  """What is trained on and evaluated.

  Attributes:
    sources: the names of the labelled domains.
    target: the name of the unlabelled one.
    datasets: what serves each domain: names of TFDS data sets separated by
      commas, of which the first one that is prepared is taken; or a folder or
      file, `folder:PATH` or `npz:PATH`.
    data_dir: where TFDS keeps data sets; its own default if empty.
    samples: how many training examples are drawn from each domain; 0 takes all.
    holdout: the share of every source's examples that is kept out of training,
      for criteria that judge a model without labels of the target.
    evaluate_on: the target's 'test_split', its training examples themselves
      ('target'), or those that were not drawn ('undrawn').
    target_labels: a table of labelled examples of the target, see
      `data.labelled`; '' where there is none.
    image_size: what images are brought to; 0 takes them as they are, −1 fits
      it to the network.
    features: how rows are weighted: 'counts' takes them as they are, 'tfidf'
      weights sparse counts of words.
    skip_unreadable: whether pictures in folders that cannot be read are left
      out and listed in the log, rather than refused.
    memory: whether pictures are held in memory ('yes'), read from disk at
      every step ('no'), or held if they fit into half of what is free.
    batch_size: examples of each domain in a mini-batch.
  """

  sources: tuple[str, ...] = option(())
  target: str = option('')
  datasets: Any = None
  data_dir: str = option('')
  samples: int = option(0, least=0)
  holdout: float = option(0.0, least=0, below=1)
  evaluate_on: str = option(
    'test_split', choices=('test_split', 'target', 'undrawn')
  )
  target_labels: str = option('')
  image_size: int = option(0, least=FIT)
  features: str = option('counts', choices=('counts', 'tfidf'))
  skip_unreadable: bool = option(False)
  memory: str = option('auto', choices=('auto', 'yes', 'no'))
  batch_size: int = option(8, least=1)

  def __post_init__(self):
    check_names('config.data.sources', self.sources)
    if not self.sources:
      raise not_allowed('config.data.sources', self.sources, 'not empty')
    if len(set(self.sources)) < len(self.sources):
      raise UserError(
        f'config.data.sources = {self.sources} names a domain twice.'
      )
    if self.target in self.sources:
      raise UserError(
        f"config.data.target = '{self.target}' is among config.data.sources = "
        f'{self.sources}; the target must be another domain.'
      )
    if not hasattr(self.datasets, 'keys'):  # a ConfigDict is no Mapping
      raise not_allowed(
        'config.data.datasets', self.datasets, 'a data set for each domain'
      )
    for name in (*self.sources, self.target):
      if name not in self.datasets:
        raise UserError(
          f"config.data names the domain '{name}', which config.data.datasets "
          f'does not have; it has {", ".join(sorted(self.datasets))}.'
        )


@dataclasses.dataclass(frozen=True)
class ViewOptions:
  """How images are distorted.

  Attributes:
    weak_augment: whether the weak view shifts and rotates: for methods with a
      strong view, as in the paper ('auto'), for all ('always') or 'never'.
    weak_rotation: the largest angle in degrees, either way.
    weak_translation: the largest shift as a part of the side, either way.
    weak_flip: whether images are mirrored at random, for all methods.
    strong: the name of the strong view, see `data.views.STRONG_VIEWS`: with
      'learned' every operation has magnitudes of its own, which are drawn more
      often the better the classifier recognises source images under them.
    randaugment_n: how many operations are applied to each image.
    randaugment_min: the least magnitude, of 30, where it is not learned.
    randaugment_max: the largest.
    randaugment_exclude: names of operations that are not used.
    learned_decay: what a learned weight keeps at an observation.
    learned_threshold: magnitudes whose weight is below this part of their
      operation's largest are not drawn.
    cutout: whether the cutout comes 'first' or 'last'.
  """

  weak_augment: str = option('auto', choices=('auto', 'always', 'never'))
  weak_rotation: float = option(5.0, least=0, most=180)
  weak_translation: float = option(0.125, least=0, most=1)
  weak_flip: bool = option(False)
  strong: str = option('randaugment')
  randaugment_n: int = option(2, least=1)
  randaugment_min: int = option(3, least=0, most=30)
  randaugment_max: int = option(10, least=0, most=30)
  randaugment_exclude: tuple[str, ...] = option(())
  learned_decay: float = option(0.99, least=0, below=1)
  learned_threshold: float = option(0.85, least=0, most=1)
  cutout: str = option('first', choices=('first', 'last'))

  def __post_init__(self):
    check_names('config.views.randaugment_exclude', self.randaugment_exclude)
    if self.randaugment_min > self.randaugment_max:
      raise UserError(
        f'config.views.randaugment_min = {self.randaugment_min} is above '
        f'config.views.randaugment_max = {self.randaugment_max}.'
      )
