"""A domain's examples from the user's own files: a folder, or a `.npz`."""

import concurrent.futures
import logging
import os
import pathlib
from collections.abc import Callable

import numpy as np

from moda_jax.data.domains import Domain
from moda_jax.data.images import resize
from moda_jax.data.in_memory import make_domain
from moda_jax.errors import UserError
from moda_jax.files import images, raw_arrays

_log = logging.getLogger(__name__)
_ARRAYS = ('images', 'labels', 'classes')


def find_folders(path: str) -> dict[str, str]:
  """Returns the domains in a folder, `<path>/<domain>/…`, by name."""
  root = _existing(path, pathlib.Path.is_dir, 'folder')
  found = [p for p in sorted(root.iterdir()) if p.is_dir() and _visible(p)]
  return _named('folder', {p.name: p for p in found}, root, 'folders')


def find_arrays(path: str) -> dict[str, str]:
  """Returns the domains in a folder, `<path>/<domain>.npz`, by name."""
  root = _existing(path, pathlib.Path.is_dir, 'folder')
  found = {p.stem: p for p in sorted(root.glob('*.npz')) if _visible(p)}
  return _named('npz', found, root, '.npz files')


def _named(
  kind: str, found: dict[str, pathlib.Path], root: pathlib.Path, what: str
) -> dict[str, str]:
  if len(found) < 2:
    raise UserError(
      f'{root} holds {len(found)} {what}; a target and at least one source are '
      'needed, each in its own.'
    )
  for name, path in found.items():
    if '.' in name or ',' in name:
      raise UserError(
        f"{path}: '{name}' cannot name a domain, because of its '.' or ','; "
        'rename it.'
      )
  return {name: f'{kind}:{path}' for name, path in found.items()}


def read_folder(name: str, path: str, image_size: int) -> Domain:
  """Reads `<path>/<class>/*`, or pictures without classes in `<path>` itself.

  Args:
    name: the domain's name.
    path: its folder; if that has all its pictures in one folder `images`,
      that one is read.
    image_size: what every picture is brought to; they may be of any size,
      format and mode, and are turned as their EXIF orientation says.
  """
  root = _existing(path, pathlib.Path.is_dir, 'folder')
  folders, flat = _list_entries(root)
  if [p.name for p in folders] == ['images'] and not flat:
    root = root / 'images'
    folders, flat = _list_entries(root)
  by_class = {p.name: _list_pictures(p) for p in folders}
  by_class = {c: files for c, files in by_class.items() if files}
  if by_class and flat:
    raise UserError(
      f'{root} holds pictures, such as {flat[0].name}, beside folders of '
      f'classes, such as {min(by_class)}; all must be in classes, or none.'
    )
  files = flat or [file for c in by_class for file in by_class[c]]
  if not files:
    raise UserError(
      f'{root} holds no pictures: {", ".join(images.SUFFIXES)} are read, in '
      'folders of classes or in the folder itself.'
    )
  labels = [i for i, c in enumerate(by_class) for _ in by_class[c]]
  return Domain(
    name=name,
    origin=f'folder {path}',
    inputs=_read_pictures(files, image_size, root),
    labels=None if flat else np.asarray(labels, np.int32),
    classes=tuple(by_class),
    examples=tuple(str(file.relative_to(root)) for file in files),
  )


def _list_entries(
  root: pathlib.Path,
) -> tuple[list[pathlib.Path], list[pathlib.Path]]:
  """Returns the folders and pictures in a folder; warns of anything else."""
  folders, pictures, others = [], [], []
  for entry in sorted(root.iterdir()):
    if not _visible(entry):
      continue
    if entry.is_dir():
      folders.append(entry)
    elif entry.is_file() and images.is_image_name(entry.name):
      pictures.append(entry)
    else:
      others.append(entry.name)
  images.warn_of_others(others, root)
  return folders, pictures


def _list_pictures(folder: pathlib.Path) -> list[pathlib.Path]:
  deeper, pictures = _list_entries(folder)
  if deeper:
    _log.warning(
      '%s: %d folders within are not looked into, such as %s',
      folder,
      len(deeper),
      deeper[0].name,
    )
  if not pictures:
    _log.warning('%s holds no pictures: no class', folder)
  return pictures


def _read_pictures(
  files: list[pathlib.Path], size: int, root: pathlib.Path
) -> np.ndarray:
  if not size:
    raise UserError(
      f'config.data.image_size = 0: the pictures of {root} may be of any '
      'size; set the one to bring them to.'
    )

  def read(file: pathlib.Path) -> np.ndarray | UserError:
    try:
      picture = images.decode(file.read_bytes(), str(file.relative_to(root)))
    except (images.UnreadableImage, OSError) as error:
      return UserError(str(error))
    picture = images.to_rgb(images.turn_upright(picture))
    return resize(np.asarray(picture), size)

  with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    read_files = list(pool.map(read, files))
  errors = [result for result in read_files if isinstance(result, UserError)]
  images.refuse_unreadable(errors, len(files), root)
  return np.stack([x for x in read_files if not isinstance(x, UserError)])


def read_arrays(name: str, path: str, image_size: int) -> Domain:
  """Reads `images`, `labels` and `classes` of a `.npz`; see `make_domain`."""
  del image_size  # arrays have a size of their own
  file = _existing(path, pathlib.Path.is_file, '.npz file')
  held = raw_arrays.list_npz(file)
  wanted = [key for key in _ARRAYS if key in held or key == 'images']
  arrays = raw_arrays.read_npz(file, wanted, kinds='buifU')
  return make_domain(
    name,
    arrays['images'],
    arrays.get('labels'),
    arrays.get('classes'),
    origin=f'npz {path}',
  )


def _existing(
  path: str, exists: Callable[[pathlib.Path], bool], what: str
) -> pathlib.Path:
  found = pathlib.Path(path).expanduser()
  if not path or not exists(found):
    raise UserError(f"'{path}' is not an existing {what}.")
  return found


def _visible(path: pathlib.Path) -> bool:
  return not images.is_hidden(path.name)


FILE_READERS = {'folder': read_folder, 'npz': read_arrays}
