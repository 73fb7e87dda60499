"""The weak and the strong view of images at a step, as a config says.

A strong view is a function of `[N, H, W, 3]` bytes, the options, and what it
draws from; `strong_view` adds one to `STRONG_VIEWS` under its name.
"""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from moda_jax.data import learned as learned_lib
from moda_jax.data import magnitudes, seeds, weak
from moda_jax.data import randaugment as randaugment_lib
from moda_jax.data.options import ViewOptions
from moda_jax.data.spec import Part
from moda_jax.errors import UserError


class Randomness(NamedTuple):
  """What a strong view draws from.

  Attributes:
    seed: for the images.
    batch_seed: for the mini-batch.
    part: what the images are of their mini-batch; None for all of it.
    probabilities: of magnitudes, where these are learned, see `data.learned`.
  """

  seed: tf.Tensor
  batch_seed: tf.Tensor
  part: Part | None = None
  probabilities: tf.Tensor | None = None


StrongView = Callable[[tf.Tensor, ViewOptions, Randomness], tf.Tensor]
STRONG_VIEWS: dict[str, StrongView] = {}


def strong_view(view: StrongView) -> StrongView:
  """Registers a function as the strong view of its name."""
  STRONG_VIEWS[view.__name__] = view
  return view


@strong_view
def none(
  images: tf.Tensor, options: ViewOptions, randomness: Randomness
) -> tf.Tensor:
  """Leaves images as they are."""
  del options, randomness
  return images


@strong_view
def randaugment(
  images: tf.Tensor, options: ViewOptions, randomness: Randomness
) -> tf.Tensor:
  """Applies RandAugment with one magnitude per mini-batch, and a cutout."""
  magnitude = magnitudes.draw_magnitude(
    randomness.batch_seed, options.randaugment_min, options.randaugment_max
  )
  return randaugment_lib.randaugment(
    images,
    randomness.seed,
    n=options.randaugment_n,
    magnitude=magnitude,
    exclude=tuple(options.randaugment_exclude),
    cutout=options.cutout,
    part=randomness.part,
  )


@strong_view
def learned(
  images: tf.Tensor, options: ViewOptions, randomness: Randomness
) -> tf.Tensor:
  """Applies RandAugment's operations at learned magnitudes, and a cutout."""
  view, _ = learned_lib.augment(
    images,
    randomness.seed,
    options,
    randomness.part,
    randomness.probabilities,
    options.cutout,
  )
  return view


def check_views(options: ViewOptions) -> None:
  """Refuses views and operations that do not exist."""
  randaugment_lib.check_exclude(options.randaugment_exclude)
  if options.strong not in STRONG_VIEWS:
    raise UserError(
      f"config.views.strong = '{options.strong}' is unknown; allowed are "
      f'{", ".join(STRONG_VIEWS)}.'
    )


class Views:
  """The views of images at a step; what is not images stays as it is."""

  def __init__(self, options: ViewOptions, seed: int, augment_weak: bool):
    """Prepares the views.

    Args:
      options: how images are distorted.
      seed: the run's.
      augment_weak: whether the weak view shifts and rotates, where the options
        leave that to the method.
    """
    self._options = options
    self._augment_weak = {'always': True, 'never': False}.get(
      options.weak_augment, augment_weak
    )
    self._weak_seed = seeds.stream(seed, 'weak view')
    self._strong_seed = seeds.stream(seed, 'strong view')
    self._source_seed = seeds.stream(seed, 'strong view of sources')
    self._batch_seed = seeds.stream(seed, 'magnitude')
    self._probe_seed = seeds.stream(seed, 'probe')

  def weak(
    self, images: tf.Tensor, step: tf.Tensor, part: Part | None = None
  ) -> tf.Tensor:
    """Returns the weak view of `[D, B, H, W, 3]`, one draw per image.

    Args:
      images: of all domains.
      step: of the mini-batch.
      part: what part of the mini-batch they are; all of it by default.
    """
    options = self._options
    distorted = self._augment_weak or options.weak_flip
    if not _are_images(images) or not distorted:
      return images
    shape = tf.shape(images)
    view = weak.weak_view(
      tf.reshape(images, tf.concat([[-1], shape[2:]], 0)),  # [D·B, H, W, 3]
      seeds.fold_in(self._weak_seed, step),
      rotation=options.weak_rotation if self._augment_weak else 0.0,
      translation=options.weak_translation if self._augment_weak else 0.0,
      flip=options.weak_flip,
      part=part,
    )
    return tf.reshape(view, shape)

  def strong(
    self,
    images: tf.Tensor,
    step: tf.Tensor,
    part: Part | None = None,
    probabilities: tf.Tensor | None = None,
  ) -> tf.Tensor:
    """Returns the strong view of `[B, H, W, 3]`; see `weak`.

    Features that are not images come as they are: for them the strong view is
    made within the network, see `Networks.dropout_range`.
    """
    if not _are_images(images):
      return images
    return self._strong(images, self._strong_seed, step, part, probabilities)

  def strong_of_sources(
    self,
    images: tf.Tensor,
    step: tf.Tensor,
    part: Part | None = None,
    probabilities: tf.Tensor | None = None,
  ) -> tf.Tensor:
    """Returns the strong view of `[M, B, H, W, 3]`; see `strong`."""
    if not _are_images(images):
      return images
    shape = tf.shape(images)
    rows = tf.reshape(images, [-1, *images.shape[2:]])
    seed = self._source_seed
    view = self._strong(rows, seed, step, part, probabilities)
    return tf.reshape(view, shape)

  def _strong(
    self,
    images: tf.Tensor,
    seed: tf.Tensor,
    step: tf.Tensor,
    part: Part | None,
    probabilities: tf.Tensor | None,
  ) -> tf.Tensor:
    randomness = Randomness(
      seeds.fold_in(seed, step),
      seeds.fold_in(self._batch_seed, step),
      part,
      probabilities,
    )
    return STRONG_VIEWS[self._options.strong](images, self._options, randomness)

  def probe(
    self,
    images: tf.Tensor,
    labels: tf.Tensor,
    step: tf.Tensor,
    part: Part | None = None,
  ) -> dict[str, tf.Tensor]:
    """Returns what magnitudes are learned from: 'input', 'label' and 'cells'.

    Args:
      images: of the sources, `[M, B, H, W, 3]`.
      labels: `[M, B]`.
      step: of the mini-batch.
      part: see `weak`.
    """
    picked, label = learned_lib.pick_in_turn(images, labels, step, part)
    seed = seeds.fold_in(self._probe_seed, step)
    made, cells = learned_lib.augment(picked, seed, self._options, part)
    return {'input': made, 'label': label, 'cells': cells}


def _are_images(inputs: tf.Tensor) -> bool:
  return inputs.dtype == tf.uint8
