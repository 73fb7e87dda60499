"""Strong views whose magnitudes follow what the classifier recognises.

CTAugment (Berthelot et al. 2020, ReMixMatch): every operation has a weight for
each of `MAGNITUDES`, see `moda_jax.training.learned_views`. Strong views draw
magnitudes by these weights, probes of labelled images draw them uniformly. At
magnitude 0 an image stays as it is, also for operations that have no value.
"""

from typing import Any

import tensorflow as tf

from moda_jax.data import geometry, randaugment
from moda_jax.data.operations import OPERATIONS
from moda_jax.data.options import ViewOptions
from moda_jax.data.parts import draw_rows
from moda_jax.data.spec import Part

MAGNITUDES = tuple(range(0, 31, 3))
SHAPE = (len(OPERATIONS), len(MAGNITUDES))  # of weights
_IDENTITY = OPERATIONS.index('Posterize')  # at magnitude 0: all bits are kept
_SALT = 0x5EED_0003


def to_probabilities(weights: Any, options: ViewOptions) -> Any:
  """Returns what magnitudes are drawn by, for weights `[…, 15, magnitudes]`.

  They are proportional to the weights, and 0 where a weight is below the
  threshold relative to the operation's largest, as in the authors' program.

  Args:
    weights: of NumPy or JAX, at least 0.
    options: have decay and threshold.
  """
  p = weights + (1 - options.learned_decay)  # never all 0
  p = p / p.max(axis=-1, keepdims=True)
  p = p * (p >= options.learned_threshold)
  return p / p.sum(axis=-1, keepdims=True)


def augment(
  images: tf.Tensor,
  seed: tf.Tensor,
  options: ViewOptions,
  part: Part | None = None,
  probabilities: tf.Tensor | None = None,
  cutout: str = '',
) -> tuple[tf.Tensor, tf.Tensor]:
  """Applies operations at magnitudes drawn for each image and operation.

  Args:
    images: [N, H, W, 3] uint8.
    seed: [2] integers.
    options: say how many operations, and which.
    part: what the images are of their mini-batch; all of it by default.
    probabilities: of the magnitudes, `SHAPE`; uniform by default.
    cutout: 'first', 'last' or none.

  Returns:
    The images, and for each of the n operations of each image its index in the
    flattened table of weights, [N, n] int32.
  """
  images = randaugment.check_images(images)
  count, height, width, _ = geometry.shape_of(images)
  if probabilities is None:
    probabilities = tf.fill(SHAPE, tf.constant(1 / SHAPE[1], tf.float64))
  n, exclude = options.randaugment_n, tuple(options.randaugment_exclude)

  def draw(rows: Any) -> tuple[randaugment.Draws, tf.Tensor]:
    draws = randaugment.draw(seed, rows, (height, width), n, exclude)
    drawn = tf.random.stateless_uniform(
      [rows, n], seed + _SALT, dtype=tf.float64, alg='philox'
    )
    return draws, drawn

  draws, drawn = draw_rows(draw, count, part)
  bounds = tf.cumsum(tf.cast(probabilities, tf.float64), axis=1)
  bounds /= bounds[:, -1:]  # what has no probability is never drawn
  passed = drawn[..., None] >= tf.gather(bounds, draws.operations)
  chosen = tf.reduce_sum(tf.cast(passed, tf.int32), axis=-1)  # [N, n]
  cells = draws.operations * len(MAGNITUDES) + chosen
  draws = draws._replace(
    operations=tf.where(chosen == 0, _IDENTITY, draws.operations)
  )
  magnitudes = tf.gather(MAGNITUDES, chosen)
  return randaugment.apply_draws(images, draws, magnitudes, cutout), cells


def pick_in_turn(
  images: tf.Tensor, labels: tf.Tensor, step: tf.Tensor, part: Part | None
) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns one mini-batch of the sources `[M, B, …]`: their rows in turn.

  Row i is that of source (i + step) mod M, with its label.
  """
  sources, count = images.shape[0], tf.shape(images)[1]
  first = 0 if part is None else part.start
  rows = tf.range(count)
  turn = (rows + first + tf.cast(step % sources, tf.int32)) % sources
  places = tf.stack([turn, rows], axis=1)
  return tf.gather_nd(images, places), tf.gather_nd(labels, places)
