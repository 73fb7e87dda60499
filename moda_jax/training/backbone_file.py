"""The weights of a fixed network, kept in the folder of the run."""

import contextlib
import os
import pathlib
import shutil

from moda_jax.errors import UserError
from moda_jax.files.atomic import write_whole
from moda_jax.models.backbone import Backbone
from moda_jax.models.published_weights import load_pretrained

_FILE = 'backbone.npz'


def keep_backbone(workdir: str | os.PathLike, backbone: Backbone) -> None:
  """Puts the weights into the run's folder, so that it predicts by itself.

  Where the file system can, it is another name for the same file, which takes
  no room.
  """
  path = pathlib.Path(workdir) / _FILE
  if path.exists():
    return
  with contextlib.suppress(OSError):  # another disk, or no such links
    os.link(backbone.path.resolve(), path)  # not a link to a link
    return
  try:
    with backbone.path.open('rb') as source, write_whole(path, 'wb') as copy:
      shutil.copyfileobj(source, copy)
  except OSError as error:
    raise UserError(f'{path} cannot be written: {error}.') from error


def find_backbone(
  workdir: str | os.PathLike, pretrained: str, description: str
) -> Backbone:
  """Returns the fixed network of a run, from its folder.

  Args:
    workdir: the run's folder.
    pretrained: where the weights were in training, if the folder lacks them.
    description: of the weights, as recorded.
  """
  own = pathlib.Path(workdir) / _FILE
  places = [path for path in (own, pathlib.Path(pretrained)) if path.is_file()]
  for path in places:
    backbone = Backbone(load_pretrained(path))
    if backbone.description == description:
      return backbone
  others = ', '.join(map(str, places))
  reason = f'{others} holds other weights' if places else 'neither is there'
  raise UserError(
    f'{own}, or {pretrained or "resnet50.npz"}, must hold the weights that the '
    f'run was trained with ({description}): {reason}. Put them there, as '
    'python -m moda_jax.models.pretrained writes them.'
  )
