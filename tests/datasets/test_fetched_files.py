"""Files fetched from a local server: checked, whole, and fetched once."""

import functools
import hashlib
import http.server
import io
import tarfile
import threading

import made_up_files
import pytest
from PIL import Image

from moda_jax import prepare
from moda_jax.datasets import downloads
from moda_jax.datasets.synth_digits import regenerated
from moda_jax.errors import UserError


class Quiet(http.server.SimpleHTTPRequestHandler):
  asked: list[str]

  def log_message(self, format, *args):
    self.asked.append(self.path)


@pytest.fixture
def server(tmp_path):
  """Returns the address of a server, its folder, and what it was asked for."""
  folder = tmp_path / 'served'
  folder.mkdir()
  handler = type('Handler', (Quiet,), {'asked': []})
  made = http.server.ThreadingHTTPServer(
    ('127.0.0.1', 0), functools.partial(handler, directory=folder)
  )
  thread = threading.Thread(target=made.serve_forever)
  thread.start()
  yield f'http://127.0.0.1:{made.server_address[1]}/', folder, handler.asked
  made.shutdown()
  thread.join()
  made.server_close()


def test_a_file_is_fetched_and_checked(server, tmp_path):
  address, folder, _ = server
  (folder / 'a.bin').write_bytes(b'content')
  digest = hashlib.sha256(b'content').hexdigest()
  path = tmp_path / 'new' / 'a.bin'
  download = downloads.Download(f'{address}a.bin', 'a.bin', digest)
  assert downloads.fetch(download, path) == digest
  assert path.read_bytes() == b'content'


@pytest.mark.parametrize(
  ('name', 'digest', 'message'),
  [('a.bin', '0' * 64, 'SHA-256'), ('missing.bin', '', 'File not found')],
)
def test_what_is_not_the_file_is_refused(
  server, tmp_path, name, digest, message
):
  address, folder, _ = server
  (folder / 'a.bin').write_bytes(b'content')
  download = downloads.Download(address + name, 'a.bin', digest)
  with pytest.raises(UserError, match=message) as error:
    downloads.fetch(download, tmp_path / 'new' / 'a.bin')
  assert download.address in str(error.value)
  assert list((tmp_path / 'new').iterdir()) == []


def write_photographs(path):
  """Writes an archive like that of BSDS500: pictures beside other files."""
  with tarfile.open(path, 'w:gz') as archive:
    for i in range(3):
      held = io.BytesIO()
      Image.new('RGB', (40, 50), (80 * i, 90, 10)).save(held, 'JPEG')
      info = tarfile.TarInfo(f'BSR/BSDS500/data/images/train/{i}.jpg')
      info.size = held.tell()
      archive.addfile(info, io.BytesIO(held.getvalue()))
    archive.addfile(tarfile.TarInfo('BSR/README'))


@pytest.mark.slow
def test_digits_are_fetched_and_prepared(server, tmp_path, monkeypatch, capsys):
  """MNIST-M is rebuilt, SynthDigits regenerated, and both are called so."""
  address, folder, asked = server
  monkeypatch.setattr(regenerated, 'COUNTS', {'train': 20, 'test': 10})
  originals = made_up_files.write_all_but_synth_digits(tmp_path / 'made')
  write_photographs(folder / 'BSR_bsds500.tgz')
  served = []
  for download in downloads.DOWNLOADS['digits']:
    name = download.address.rpartition('/')[2]
    if download.path != 'photographs.tgz':
      content = (originals / download.path).read_bytes()
      (folder / name).write_bytes(content)
      digest = hashlib.sha256(content).hexdigest()
      download = download._replace(sha256=digest)
    served.append(download._replace(address=address + name))
  monkeypatch.setitem(downloads.DOWNLOADS, 'digits', tuple(served))
  options = [
    f'--manual_dir={tmp_path / "manual"}',
    f'--data_dir={tmp_path / "data"}',
    '--download',
  ]
  prepare.main(['digits', *options])
  text = capsys.readouterr().out
  assert text.count('checksum verified') == 6
  assert 'BSDS500, to rebuild MNIST-M from), no checksum is known' in text
  assert 'REBUILT with your photographs, not the original' in text
  assert 'REGENERATED from fonts, not the original' in text
  assert 'missing: a folder with mnist_m_train_labels.txt' in text
  assert len(asked) == 7
  prepare.main(['digits', *options])
  assert len(asked) == 7  # nothing is fetched twice
  assert capsys.readouterr().out.count('is there already') == 7


def test_a_group_without_addresses_says_so(tmp_path, capsys):
  downloads.fetch_group('reviews', tmp_path)
  assert 'reviews: nothing can be fetched' in capsys.readouterr().out


def test_every_pinned_checksum_is_one():
  for download in downloads.DOWNLOADS['digits']:
    assert len(download.sha256) in (0, 64)
    assert download.address.startswith('http')
  checked = [d for d in downloads.DOWNLOADS['digits'] if d.sha256]
  assert len(checked) == 6
