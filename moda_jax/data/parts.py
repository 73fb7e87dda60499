"""What is drawn for the part of a mini-batch that one process makes.

It depends on an example's place in the whole mini-batch. So a part is drawn for
as if it were whole: samples and views are the same for any number of processes.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from moda_jax.data.spec import Part


def take_part(rows: tf.Tensor, part: Part) -> tf.Tensor:
  """Returns the parts `[D · part, …]` of D mini-batches `[D · size, …]`."""
  inner = rows.shape[1:]
  batches = tf.reshape(rows, [-1, part.size, *inner])
  return tf.reshape(batches[:, part.start : part.stop], [-1, *inner])


def draw_rows(
  draw: Callable[[Any], Any], count: int | tf.Tensor, part: Part | None
) -> Any:
  """Returns what is drawn for `count` rows, as for those of whole batches.

  Args:
    draw: from a number of rows to what is drawn for them: tensors whose first
      axis is that of the rows.
    count: how many rows there are here.
    part: what they are of their mini-batches; None if they are all of them.
  """
  if part is None:
    return draw(count)
  drawn = draw(count // (part.stop - part.start) * part.size)
  return tf.nest.map_structure(lambda rows: take_part(rows, part), drawn)
