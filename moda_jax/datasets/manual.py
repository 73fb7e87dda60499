"""Finding originals in `manual_dir`, and recording what was used.

A data set's files may be in a folder of its own in `manual_dir` or directly
in it.
"""

import dataclasses
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow_datasets as tfds

from moda_jax.errors import UserError
from moda_jax.files import archives


class MissingFile(UserError):
  """An original is not in `manual_dir`."""


@dataclasses.dataclass(frozen=True)
class Source:
  """What a split was made from."""

  file: str  # relative to manual_dir, or a description
  sha256: str
  verified: bool = False  # the checksum is that of the complete original


def record_sources(
  builder: tfds.core.DatasetBuilder, sources: dict[str, Source]
) -> None:
  """Records in the data set's metadata what its splits were made from."""
  builder.info.metadata['sources'] = {
    split: dataclasses.asdict(source) for split, source in sources.items()
  }


def recorded_sources(builder: tfds.core.DatasetBuilder) -> dict[str, Source]:
  """Returns what `record_sources` wrote when the data set was prepared."""
  noted: dict[str, Any] = (builder.info.metadata or {}).get('sources', {})
  return {split: Source(**fields) for split, fields in noted.items()}


def places(
  manual_dir: os.PathLike[str], folders: Sequence[str]
) -> list[pathlib.Path]:
  """Returns where to look: folders of these names, then `manual_dir` itself."""
  root = pathlib.Path(manual_dir)
  return [*(root / folder for folder in folders), root]


def find_files(
  manual_dir: os.PathLike[str],
  folders: Sequence[str],
  wanted: Mapping[str, Sequence[str]],
  instructions: str,
) -> dict[str, pathlib.Path]:
  """Finds all files, or raises one `MissingFile` that lists all missing.

  Args:
    manual_dir: where the user put originals.
    folders: names of the data set's own folder.
    wanted: for each file, the names it may have.
    instructions: where to get the files.
  """
  looked_in = places(manual_dir, folders)
  found, missing = {}, []
  for key, names in wanted.items():
    paths = (place / name for place in looked_in for name in names)
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
      missing.append(names[0])
    else:
      found[key] = path
  if missing:
    raise _missing(missing, looked_in, instructions)
  return found


def find_tree(
  manual_dir: os.PathLike[str],
  folders: Sequence[str],
  is_unpacked: Callable[[pathlib.Path], bool],
  wanted: str,
  archive_globs: Sequence[str],
  instructions: str,
) -> pathlib.Path:
  """Finds an unpacked folder or an archive, or raises `MissingFile`.

  Each place is searched for both before the next one is, so that stray files
  in `manual_dir` do not take precedence over the data set's own folder.

  Args:
    manual_dir: where the user put originals.
    folders: names of the data set's own folder.
    is_unpacked: recognises the unpacked folder by what is in it.
    wanted: the unpacked folder in words.
    archive_globs: names of archives that are directly in `manual_dir`; in the
      data set's own folder an archive may have any name.
    instructions: where to get the files.
  """
  looked_in = places(manual_dir, folders)
  for place in looked_in:
    for root in (place, *(place / folder for folder in folders)):
      if is_unpacked(root):
        return root
    globs = archive_globs if place == looked_in[-1] else ('*',)
    found = sorted({path for glob in globs for path in place.glob(glob)})
    found = [path for path in found if archives.is_archive(path)]
    if len(found) > 1:
      raise UserError(
        f'{place} holds several archives: '
        f'{", ".join(path.name for path in found)}. Leave the right one there.'
      )
    if found:
      return found[0]
  raise _missing([f'{wanted}, or an archive of that'], looked_in, instructions)


def _missing(
  wanted: Sequence[str], looked_in: Sequence[pathlib.Path], instructions: str
) -> MissingFile:
  return MissingFile(
    f'missing: {", ".join(wanted)}\n'
    f'looked in: {", ".join(str(place) for place in looked_in)}\n'
    f'{instructions}'
  )


def relative(path: pathlib.Path, manual_dir: os.PathLike[str]) -> str:
  """Returns the path as shown to the user, relative to `manual_dir`."""
  return path.relative_to(manual_dir).as_posix()
