"""Archives and folders: every packing, and every attack on the reader."""

import errno
import gzip
import io
import os
import struct
import tarfile
import zipfile

import made_up_files
import pytest

from moda_jax.errors import UserError
from moda_jax.files import archives

FILES = {
  'a/one.txt': b'1' * 700,
  'a/b/two.bin': bytes(range(256)) * 5,
  'three': b'',
}


def _read(path, entries=()):
  return {
    member.name: member.read()
    for member in archives.iter_members(path, entries)
  }


def _tar(path, *infos, contents=()):
  with tarfile.open(path, 'w') as archive:
    for info, content in zip(infos, [*contents, *[b''] * 9], strict=False):
      archive.addfile(info, io.BytesIO(content))
  return path


@pytest.mark.parametrize('packing', made_up_files.PACKINGS)
def test_every_packing_gives_the_same_files(tmp_path, packing):
  path = made_up_files.pack(FILES, packing, tmp_path, 'x')
  assert _read(path) == FILES


def test_content_not_name_tells_the_kind(tmp_path):
  path = made_up_files.pack(FILES, 'zip', tmp_path, 'x')
  assert _read(path.rename(tmp_path / 'x.tar')) == FILES


def test_entries_limit_a_folder_and_not_an_archive(tmp_path):
  folder = made_up_files.pack(FILES, 'folder', tmp_path, 'x')
  os.symlink('/etc', folder / 'stranger')  # not looked at
  assert set(_read(folder, ('a',))) == {'a/one.txt', 'a/b/two.bin'}
  packed = made_up_files.pack(FILES, 'tar', tmp_path, 'x')
  assert _read(packed, ('a',)) == FILES


@pytest.mark.parametrize(
  'name', ['../x', '/etc/x', 'a/../../x', '..\\x', 'C:\\x', 'C:/x', 'a/..']
)
@pytest.mark.parametrize('packing', ['tar', 'tar.gz', 'zip'])
def test_names_that_lead_out_are_refused(tmp_path, packing, name):
  path = made_up_files.pack({name: b'evil'}, packing, tmp_path, 'x')
  with pytest.raises(UserError, match='leads out of the archive'):
    _read(path)


@pytest.mark.parametrize(
  'kind', [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE]
)
def test_links_and_devices_in_a_tar_are_refused(tmp_path, kind):
  info = tarfile.TarInfo('picture.png')
  info.type, info.linkname = kind, '/etc/passwd'
  with pytest.raises(UserError, match=r'picture\.png is a link or a special'):
    _read(_tar(tmp_path / 'x.tar', info))


def test_a_link_in_a_zip_is_refused(tmp_path):
  info = zipfile.ZipInfo('picture.png')
  info.external_attr = 0o120777 << 16
  with zipfile.ZipFile(tmp_path / 'x.zip', 'w') as archive:
    archive.writestr(info, '/etc/passwd')
  with pytest.raises(UserError, match=r'picture\.png is a link'):
    _read(tmp_path / 'x.zip')


def test_links_out_of_a_folder_are_refused(tmp_path):
  folder = made_up_files.pack(FILES, 'folder', tmp_path, 'x')
  os.symlink('one.txt', folder / 'a' / 'within.txt')
  assert _read(folder)['a/within.txt'] == FILES['a/one.txt']
  os.symlink('/etc/passwd', folder / 'a' / 'without.txt')
  with pytest.raises(UserError, match='leads out of'):
    _read(folder)


def test_a_linked_folder_and_a_pipe_are_refused(tmp_path):
  folder = made_up_files.pack(FILES, 'folder', tmp_path, 'x')
  os.symlink(folder / 'a', folder / 'again')
  with pytest.raises(UserError, match='again is a link'):
    _read(folder)
  (folder / 'again').unlink()
  os.mkfifo(folder / 'pipe')
  with pytest.raises(UserError, match='pipe is not a regular file'):
    _read(folder)


@pytest.mark.parametrize('packing', made_up_files.PACKINGS)
@pytest.mark.parametrize(
  ('limit', 'value', 'message'),
  [
    ('MAX_MEMBER_BYTES', 1000, 'two.bin unpacks to 1,280 bytes'),
    ('MAX_TOTAL_BYTES', 1500, 'everything inside unpacks to'),
    ('MAX_MEMBERS', 2, 'more than 2 files'),
  ],
)
def test_limits(tmp_path, monkeypatch, packing, limit, value, message):
  path = made_up_files.pack(FILES, packing, tmp_path, 'x')
  monkeypatch.setattr(archives, limit, value)
  with pytest.raises(UserError, match=message):
    _read(path)


def test_a_gzip_bomb_is_not_unpacked(tmp_path, monkeypatch):
  """A member is refused by its header, before its bytes are inflated."""
  path = made_up_files.pack(
    {'a': bytes(50 * 2**20), 'b': b''}, 'tar.gz', tmp_path, 'x'
  )
  assert path.stat().st_size < 100_000
  inflated = []
  original = gzip.GzipFile.read

  def counting(self, size=-1):
    content = original(self, size)
    inflated.append(len(content))
    return content

  monkeypatch.setattr(gzip.GzipFile, 'read', counting)
  monkeypatch.setattr(archives, 'MAX_MEMBER_BYTES', 2**20)
  with pytest.raises(UserError, match='a unpacks to 52,428,800 bytes'):
    _read(path)
  assert sum(inflated) < 2**16


def test_a_long_name_of_many_bytes_is_not_read(tmp_path, monkeypatch):
  """GNU tar's long names hold a size that tarfile believes."""
  info = tarfile.TarInfo('././@LongLink')
  info.type, info.size = tarfile.GNUTYPE_LONGNAME, 2**33
  header = info.tobuf(tarfile.GNU_FORMAT)
  (tmp_path / 'x.tar').write_bytes(header + bytes(10_240))
  with pytest.raises(UserError, match='header of 8,589,934,592 bytes'):
    _read(tmp_path / 'x.tar')


def test_a_sparse_member_is_refused(tmp_path):
  """Its bytes are few, and what it claims to unpack to is not."""
  info = tarfile.TarInfo('sparse')
  info.type = tarfile.GNUTYPE_SPARSE
  header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
  header[483:495] = b'77777777777\0'  # the size it claims
  header[148:156] = b' ' * 8
  header[148:156] = f'{sum(header):06o}\0 '.encode()
  (tmp_path / 'x.tar').write_bytes(bytes(header) + bytes(10_240))
  with pytest.raises(UserError, match='sparse'):
    _read(tmp_path / 'x.tar')


@pytest.mark.parametrize('packing', ['tar', 'tar.gz', 'zip'])
def test_a_cut_archive_is_noticed_wherever_it_is_cut(tmp_path, packing):
  path = made_up_files.pack(FILES, packing, tmp_path, 'x')
  whole = path.read_bytes()
  noticed = 0
  step = max(1, len(whole) // 150)
  for length in [*range(0, len(whole), step), *range(0, len(whole), 512)]:
    path.write_bytes(whole[:length])
    try:
      found = _read(path)
    except UserError:
      noticed += 1
    else:
      assert found == FILES, length  # cut in the padding: nothing is lost
  assert noticed > 20


@pytest.mark.parametrize('packing', ['tar', 'tar.gz'])
def test_a_zip_at_the_end_of_a_tar_is_one_of_its_files(tmp_path, packing):
  inner = made_up_files.pack(FILES, 'zip', tmp_path, 'inner').read_bytes()
  files = {'PK': b'', 'one.txt': b'1', 'two.zip': inner}
  path = made_up_files.pack(files, packing, tmp_path, 'x')
  assert _read(path) == files


@pytest.mark.parametrize('packing', ['tar', 'tar.gz', 'zip'])
def test_an_archive_may_be_empty(tmp_path, packing):
  assert _read(made_up_files.pack({}, packing, tmp_path, 'x')) == {}


@pytest.mark.parametrize(
  'kind', [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
def test_a_zip_damaged_anywhere_is_refused_or_read(tmp_path, kind):
  path = tmp_path / 'x.zip'
  content = {'é.txt': made_up_files.random_image(0, 300).tobytes()}
  with zipfile.ZipFile(path, 'w', kind) as archive:
    archive.writestr(*content.popitem())
  whole = path.read_bytes()
  refused = 0
  for place in range(4, len(whole)):
    damaged = bytearray(whole)
    damaged[place] ^= 255
    path.write_bytes(damaged)
    try:
      _read(path)
    except UserError:
      refused += 1
  assert refused > 300


def test_a_folder_that_cannot_be_read_is_named(tmp_path, monkeypatch):
  folder = made_up_files.pack(FILES, 'folder', tmp_path, 'x')
  scandir = os.scandir

  def refuse(path):
    if os.fspath(path).endswith('b'):
      raise PermissionError(errno.EACCES, 'Permission denied', path)
    return scandir(path)

  monkeypatch.setattr(os, 'scandir', refuse)
  with pytest.raises(UserError, match='a/b cannot be read: Permission denied'):
    _read(folder)


@pytest.mark.parametrize('packing', ['tar.gz', 'zip'])
def test_damaged_bytes_are_noticed(tmp_path, packing):
  path = made_up_files.pack(
    {'x': made_up_files.random_image(0, 4000).tobytes()}, packing, tmp_path, 'x'
  )
  content = bytearray(path.read_bytes())
  content[2000] ^= 255
  path.write_bytes(content)
  with pytest.raises(UserError, match='truncated, damaged or not an archive'):
    _read(path)


def test_an_encrypted_member_is_refused(tmp_path):
  path = made_up_files.pack({'x': b'secret'}, 'zip', tmp_path, 'x')
  content = bytearray(path.read_bytes())
  directory = content.index(b'PK\1\2')
  content[directory + 8] |= 1
  path.write_bytes(content)
  with pytest.raises(UserError, match='x is encrypted'):
    _read(path)


def test_a_size_that_lies_gives_no_more_than_it_says(tmp_path, monkeypatch):
  """A zip whose directory says 10 bytes for a member of a million."""
  path = made_up_files.pack({'x': bytes(10**6)}, 'zip', tmp_path, 'x')
  content = bytearray(path.read_bytes())
  directory = content.index(b'PK\1\2')
  content[directory + 24 : directory + 28] = struct.pack('<I', 10)
  path.write_bytes(content)
  monkeypatch.setattr(archives, 'MAX_MEMBER_BYTES', 1000)
  with pytest.raises(UserError, match='truncated, damaged or not an archive'):
    _read(path)


@pytest.mark.parametrize(
  'content', [b'', b'no archive', b'\x1f\x8b\x08 no gzip']
)
def test_other_files_are_refused(tmp_path, content):
  path = tmp_path / 'x.tar'
  path.write_bytes(content)
  with pytest.raises(UserError, match='truncated, damaged or not an archive'):
    _read(path)


def test_a_missing_file_is_named(tmp_path):
  with pytest.raises(UserError, match=r'gone\.tar'):
    _read(tmp_path / 'gone.tar')
