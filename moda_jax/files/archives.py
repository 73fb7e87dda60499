"""Archives and folders of unknown origin, read member by member.

Members are handed out as bytes in memory; nothing is unpacked to disk. What an
archive claims is not believed: names that lead out of it, links, encrypted
members and sizes beyond the limits below are refused with a `UserError`.
"""

import contextlib
import dataclasses
import gzip
import io
import lzma
import os
import pathlib
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator

from moda_jax.errors import UserError

# About twenty times the largest original that is read this way, and still
# harmless to a machine that can train on it.
MAX_MEMBERS = 500_000
MAX_MEMBER_BYTES = 64 * 2**20
MAX_TOTAL_BYTES = 4 * 2**30

ARCHIVE_SUFFIXES = ('.tar', '.tar.gz', '.tgz', '.zip')

# What reading damaged bytes raises.
BROKEN = (
  tarfile.TarError,
  zipfile.BadZipFile,
  zlib.error,
  lzma.LZMAError,
  EOFError,
  OSError,
  ValueError,  # zipfile: a name that is not UTF-8, a place before the start
  OverflowError,  # tarfile: a number beyond all bounds
  NotImplementedError,  # zipfile: a compression it does not know
)
_ZIP_STARTS = (b'PK\3\4', b'PK\5\6')  # of the first member, of none at all
_TAR_BLOCK = 512
_CHUNK = 2**16


@dataclasses.dataclass(frozen=True)
class Member:
  """A file in an archive or folder: its path inside and how to read it."""

  name: str  # with forward slashes, relative
  size: int
  read: Callable[[], bytes]

  @property
  def parts(self) -> tuple[str, ...]:
    """The path, split."""
    return pathlib.PurePosixPath(self.name).parts


def is_archive(path: pathlib.Path) -> bool:
  """Returns whether the name is that of an archive we read."""
  return path.is_file() and path.name.lower().endswith(ARCHIVE_SUFFIXES)


def iter_members(
  path: os.PathLike[str], entries: Collection[str] = ()
) -> Iterator[Member]:
  """Yields the regular files of a folder, `.tar`, `.tar.gz` or `.zip`.

  A member must be read before the next one is asked for.

  Args:
    path: a folder or an archive, recognised by its content, not its name.
    entries: if given, only these files and folders directly in a folder are
      looked at; others may be next to them. An archive is read as a whole.

  Yields:
    The members: in order of name from a folder, else as the archive has them.

  Raises:
    UserError: the archive is broken, hostile or of another kind.
  """
  path = pathlib.Path(path)
  if path.is_dir():
    members = _folder_members(path, entries)
  elif _is_zip(path):
    members = _zip_members(path)
  else:
    members = _tar_members(path)
  total = 0
  for count, member in enumerate(members, 1):
    total += member.size
    if count > MAX_MEMBERS:
      raise UserError(f'{path}: more than {MAX_MEMBERS:,} files inside.')
    _check_size(path, member.name, member.size, MAX_MEMBER_BYTES)
    _check_size(path, 'everything inside', total, MAX_TOTAL_BYTES)
    yield member


def _is_zip(path: pathlib.Path) -> bool:
  # `zipfile.is_zipfile` looks at the end, where a tar may hold a zip.
  with _broken_is_user_error(path), open(path, 'rb') as file:
    return file.read(4) in _ZIP_STARTS


def _check_size(path: pathlib.Path, what: str, size: int, allowed: int) -> None:
  if size > allowed:
    raise UserError(
      f'{path}: {what} unpacks to {size:,} bytes; {allowed:,} are allowed.'
    )


def _check_name(path: pathlib.Path, name: str) -> str:
  """Returns the name with forward slashes, if it stays inside the archive."""
  posix = name.replace('\\', '/')
  parts = posix.split('/')
  if posix.startswith('/') or '..' in parts or ':' in parts[0]:
    raise UserError(f'{path}: the member {name!r} leads out of the archive.')
  return str(pathlib.PurePosixPath(posix))


@contextlib.contextmanager
def _broken_is_user_error(path: pathlib.Path) -> Iterator[None]:
  try:
    yield
  except BROKEN as error:
    raise UserError(
      f'{path} is truncated, damaged or not an archive we read '
      f'({", ".join(ARCHIVE_SUFFIXES)}): {error or type(error).__name__}.'
    ) from error


def _folder_members(
  root: pathlib.Path, entries: Collection[str]
) -> Iterator[Member]:
  inside = root.resolve()
  for folder, subfolders, names in os.walk(root, onerror=_refuse_folder):
    if entries and pathlib.Path(folder) == root:
      subfolders[:] = [name for name in subfolders if name in entries]
      names = [name for name in names if name in entries]
    subfolders.sort()
    linked = [name for name in subfolders if os.path.islink(f'{folder}/{name}')]
    if linked:
      raise UserError(f'{folder}/{linked[0]} is a link; a folder is needed.')
    for name in sorted(names):
      file = pathlib.Path(folder, name)
      if not file.resolve().is_relative_to(inside):
        raise UserError(f'{file} is a link that leads out of {root}.')
      if not file.is_file():
        raise UserError(f'{file} is not a regular file.')
      yield Member(
        file.relative_to(root).as_posix(), file.stat().st_size, file.read_bytes
      )


def _refuse_folder(error: OSError) -> None:
  raise UserError(f'{error.filename} cannot be read: {error.strerror}.')


def _zip_members(path: pathlib.Path) -> Iterator[Member]:
  with _broken_is_user_error(path), zipfile.ZipFile(path) as archive:
    for info in archive.infolist():
      if not info.filename:
        raise UserError(f'{path} has a member without a name.')
      name = _check_name(path, info.filename)
      if stat.S_ISLNK(info.external_attr >> 16):
        raise UserError(f'{path}: the member {name} is a link.')
      if info.flag_bits & 1:
        raise UserError(f'{path}: the member {name} is encrypted.')
      if not info.is_dir():
        # zipfile gives no more than the size in the directory, then checks CRC.
        yield Member(name, info.file_size, _zip_reader(path, archive, info))


def _zip_reader(
  path: pathlib.Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo
) -> Callable[[], bytes]:
  def read() -> bytes:
    with _broken_is_user_error(path):
      return archive.read(info)

  return read


def _tar_members(path: pathlib.Path) -> Iterator[Member]:
  with _broken_is_user_error(path), open(path, 'rb') as raw:
    compressed = raw.read(2) == b'\x1f\x8b'
    raw.seek(0)
    stream = _Bounded(path, gzip.GzipFile(fileobj=raw) if compressed else raw)
    with tarfile.open(fileobj=stream, mode='r:') as archive:
      while (info := archive.next()) is not None:
        # It would keep every header; typeshed does not know its list of them.
        archive.members.clear()  # type: ignore[attr-defined]
        name = _check_name(path, info.name)
        if info.isdir():
          continue
        if info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or info.sparse:
          raise UserError(
            f'{path}: the member {name} is a link or a special file.'
          )
        yield Member(name, info.size, _tar_reader(path, archive, info))
      # Cut exactly between two members, tarfile notices nothing.
      stream.seek(archive.offset)
      if len(stream.read(_TAR_BLOCK)) < _TAR_BLOCK:
        raise UserError(f'{path} is truncated: its end mark is missing.')
      # gzip compares its checksum only at the very end.
      while stream.read(_CHUNK):
        _check_size(path, 'everything inside', stream.tell(), MAX_TOTAL_BYTES)


def _tar_reader(
  path: pathlib.Path, archive: tarfile.TarFile, info: tarfile.TarInfo
) -> Callable[[], bytes]:
  def read() -> bytes:
    with _broken_is_user_error(path):
      file = archive.extractfile(info)
      assert file is not None  # as it is for all but regular files
      return file.read()

  return read


class _Bounded(io.RawIOBase):
  """A stream for tarfile, which takes sizes in headers at their word."""

  def __init__(self, path: pathlib.Path, stream: io.BufferedIOBase) -> None:
    self._path = path
    self._stream = stream

  def readable(self) -> bool:
    return True

  def seekable(self) -> bool:
    return True

  def read(self, size: int = -1) -> bytes:
    if not 0 <= size <= MAX_MEMBER_BYTES:
      raise UserError(f'{self._path}: a header of {size:,} bytes is refused.')
    return self._stream.read(size)

  def seek(self, position: int, whence: int = os.SEEK_SET) -> int:
    if whence == os.SEEK_SET:
      _check_size(self._path, 'everything inside', position, MAX_TOTAL_BYTES)
    return self._stream.seek(position, whence)

  def tell(self) -> int:
    return self._stream.tell()
