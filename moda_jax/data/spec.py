"""What a method needs in a batch, and what of it a process makes."""

from typing import NamedTuple


class BatchSpec(NamedTuple):
  """What the batch carries; nothing undeclared is in it.

  Attributes:
    target_views: the views of the target. A method that declares 'strong' is
      trained on shifted and rotated images in 'weak' as well; for the others
      'weak' is the image as it is.
    source_strong: whether the sources come in a strong view beside 'weak'.
    sources: whether the batch carries the sources at all.
    target_labels: whether it carries the labels of the target.
  """

  target_views: tuple[str, ...] = ('weak',)
  sources: bool = True
  target_labels: bool = False
  source_strong: bool = False

  @property
  def has_strong_view(self) -> bool:
    """Whether the target comes in a strong view too."""
    return 'strong' in self.target_views

  @property
  def has_target(self) -> bool:
    """Whether anything of the target is in the batch."""
    return bool(self.target_views) or self.target_labels


class Part(NamedTuple):
  """The rows of every mini-batch that one process makes.

  Attributes:
    start: the first row.
    stop: the row after the last one.
    size: how many rows the whole mini-batch has.
  """

  start: int
  stop: int
  size: int
