"""A domain's examples from the user's own files: a folder, or a `.npz`."""

import logging
import pathlib
from collections.abc import Callable, Sequence

import numpy as np

from moda_jax.data.domains import Domain
from moda_jax.data.in_memory import make_domain
from moda_jax.data.pictures import PictureFiles, UnsizedPictures
from moda_jax.data.rows import from_csr_parts
from moda_jax.errors import UserError
from moda_jax.files import images, raw_arrays

_log = logging.getLogger(__name__)
_ARRAYS = ('labels', 'classes')
_CSR = ('data', 'indices', 'indptr', 'shape')  # of scipy.sparse.save_npz


def find_folders(path: str) -> dict[str, str]:
  """Returns the domains in a folder, `<path>/<domain>/…`, by name."""
  root = _existing(path, pathlib.Path.is_dir, 'folder')
  visible = [p for p in sorted(root.iterdir()) if _visible(p)]
  for entry in visible:
    if entry.is_symlink() and not entry.exists():
      raise _dead_link(entry)
  found = [p for p in visible if p.is_dir()]
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


def open_folder(name: str, path: str) -> Domain:
  """Lists `<path>/<class>/*`, or pictures without classes in `<path>` itself.

  The domain's inputs are `PictureFiles`, not read yet.

  Args:
    name: the domain's name.
    path: its folder; if that has all its pictures in one folder `images`,
      that one is read.
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
    inputs=PictureFiles(files, root),
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
    elif images.is_photograph_name(entry.name):  # also a link to nothing
      pictures.append(entry)
    elif entry.is_symlink() and not entry.exists():
      raise _dead_link(entry)
    else:
      others.append(entry.name)
  images.warn_of_others(others, root)
  return folders, pictures


def _dead_link(path: pathlib.Path) -> UserError:
  return UserError(
    f'{path} is a link to {path.readlink()}, which is not there; mend it or '
    'remove it.'
  )


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


def skip_unreadable(domain: Domain) -> Domain:
  """Returns the domain without pictures that cannot be read; lists them."""
  pictures = domain.inputs
  if not isinstance(pictures, UnsizedPictures):
    return domain
  faults = pictures.find_unreadable()
  if not faults:
    return domain
  if len(faults) == len(pictures):
    images.refuse_unreadable(list(faults.values()), len(faults), pictures.place)
  _log.warning(
    '%s: %d of %d pictures cannot be read and are skipped:\n  %s',
    domain.name,
    len(faults),
    len(pictures),
    '\n  '.join(str(fault) for fault in faults.values()),
  )
  kept = [i for i in range(len(pictures)) if i not in faults]
  return domain.take(np.asarray(kept))


def read_arrays(name: str, path: str) -> Domain:
  """Reads inputs, `labels` and `classes` of a `.npz`; see `make_domain`.

  The inputs are `images`, `features` `[N, F]`, or a sparse matrix as
  `scipy.sparse.save_npz` writes it.
  """
  file = _existing(path, pathlib.Path.is_file, '.npz file')
  held = raw_arrays.list_npz(file)
  inputs = _find_inputs(held, file)
  wanted = [*inputs, *(key for key in _ARRAYS if key in held)]
  arrays = raw_arrays.read_npz(file, wanted, kinds='buifU')
  if inputs == _CSR:
    parts = {key: arrays[key] for key in inputs}
    rows = from_csr_parts(parts, f'npz {path}, {name}')
  else:
    rows = arrays[inputs[0]]
    if (rows.ndim == 2) != (inputs[0] == 'features'):
      raise UserError(
        f"npz {path}, {name}: '{inputs[0]}' of shape {rows.shape}; 'features' "
        "are [N, F], 'images' [N, H, W], [N, H, W, 1] or [N, H, W, 3]."
      )
  return make_domain(
    name,
    rows,
    arrays.get('labels'),
    arrays.get('classes'),
    origin=f'npz {path}',
  )


def _find_inputs(held: Sequence[str], file: pathlib.Path) -> tuple[str, ...]:
  """Returns the arrays of a `.npz` that hold its inputs."""
  kinds = (('images',), ('features',), _CSR)
  found = [kind for kind in kinds if set(kind) <= set(held)]
  if len(found) != 1:
    raise UserError(
      f"{file} holds {', '.join(held) or 'nothing'}; it must hold 'images', "
      "or 'features' [N, F], or what scipy.sparse.save_npz writes, and one of "
      'them alone.'
    )
  return found[0]


def _existing(
  path: str, exists: Callable[[pathlib.Path], bool], what: str
) -> pathlib.Path:
  found = pathlib.Path(path).expanduser()
  if not path or not exists(found):
    raise UserError(f"'{path}' is not an existing {what}.")
  return found


def _visible(path: pathlib.Path) -> bool:
  return not images.is_hidden(path.name)


FILE_READERS = {'folder': open_folder, 'npz': read_arrays}
