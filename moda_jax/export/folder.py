"""The folder that an exported model is handed on in."""

import json
import logging
import os
import pathlib
import tempfile
from collections.abc import Sequence

from moda_jax.errors import UserError
from moda_jax.export import formats as formats_lib
from moda_jax.export.card import make_card
from moda_jax.models.backbone import Backbone
from moda_jax.training.trained import Trained

_log = logging.getLogger(__name__)


def check_place(folder: str | os.PathLike) -> pathlib.Path:
  """Returns the folder; refuses one that holds something."""
  if not os.fspath(folder):
    raise UserError("--to='' does not name a folder.")
  path = pathlib.Path(folder).expanduser()
  try:
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
      raise UserError(
        f'--to={path} is there already and is not an empty folder.'
      )
  except OSError as error:
    raise UserError(f'--to={path} cannot be read: {error}.') from error
  return path


def write_folder(
  trained: Trained,
  folder: str | os.PathLike,
  formats: Sequence[str] = (),
  backbone: Backbone | None = None,
) -> pathlib.Path:
  """Writes model, class names and model card; returns the folder.

  It is there whole or not at all.

  Args:
    trained: the model and the run's folder.
    folder: to write, new or empty.
    formats: see `formats.choose`.
    backbone: what computes features from pictures, if anything.
  """
  path = check_place(folder)
  chosen = formats_lib.choose(formats)
  portable = formats_lib.Portable(trained, backbone)
  try:
    parent = path.absolute().parent
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory('.partial', 'export', parent) as place:
      made = pathlib.Path(place) / 'made'
      made.mkdir()
      written = [
        name
        for name in chosen
        if _write(name, portable, made, asked_for=bool(formats))
      ]
      _write_texts(trained, written, made)
      made.replace(path)
  except OSError as error:
    raise UserError(f'--to={path} cannot be written: {error}.') from error
  return path


def _write(
  name: str,
  portable: formats_lib.Portable,
  folder: pathlib.Path,
  asked_for: bool,
) -> bool:
  """Writes one format; one that was not asked for may fail, with a warning."""
  try:
    formats_lib.WRITERS[name](portable, folder)
  except UserError as error:
    if asked_for:
      raise
    _log.warning('%s', error)
    return False
  return True


def _write_texts(
  trained: Trained, formats: Sequence[str], folder: pathlib.Path
) -> None:
  classes = json.dumps(trained.model.inputs.classes, ensure_ascii=False)
  (folder / 'classes.json').write_text(f'{classes}\n', 'utf-8')
  card = make_card(trained, formats)
  (folder / 'MODEL_CARD.md').write_text(card, 'utf-8')
