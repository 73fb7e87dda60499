"""Original files fetched over the network, checked before they are used.

The addresses are those that TFDS and public scripts use. What is not listed
here must be fetched by hand, or is made by the builders themselves.
"""

import http.client
import pathlib
import urllib.error
from typing import NamedTuple

from moda_jax.datasets import checksums
from moda_jax.errors import UserError
from moda_jax.files.atomic import write_whole
from moda_jax.files.downloads import copy_from

_MNIST = 'https://storage.googleapis.com/cvdf-datasets/mnist/'
_SVHN = 'http://ufldl.stanford.edu/housenumbers/'
_BSDS500 = (
  'https://www2.eecs.berkeley.edu/Research/Projects/CS/vision/grouping/BSR/'
  'BSR_bsds500.tgz'
)


class Download(NamedTuple):
  """A file on the network.

  Attributes:
    address: where it is.
    path: what it is called in `manual_dir`.
    sha256: of the file; '' where no checksum is known.
    purpose: what it is good for, where that is not plain.
  """

  address: str
  path: str
  sha256: str = ''
  purpose: str = ''


# Of the compressed files at this address, as TFDS has them.
_MNIST_SHA256 = {
  'train-images-idx3-ubyte.gz': (
    '440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609'
  ),
  'train-labels-idx1-ubyte.gz': (
    '3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c'
  ),
  't10k-images-idx3-ubyte.gz': (
    '8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6'
  ),
  't10k-labels-idx1-ubyte.gz': (
    'f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6'
  ),
}
DOWNLOADS: dict[str, tuple[Download, ...]] = {
  'digits': (
    *(
      Download(_MNIST + name, f'mnist/{name}', digest)
      for name, digest in _MNIST_SHA256.items()
    ),
    *(
      Download(_SVHN + f'{split}_32x32.mat', f'svhn/{split}_32x32.mat', digest)
      for split, digest in checksums.SVHN_SHA256.items()
    ),
    Download(
      _BSDS500, 'photographs.tgz', purpose='BSDS500, to rebuild MNIST-M from'
    ),
  ),
}


def fetch_group(group: str, manual_dir: pathlib.Path) -> None:
  """Fetches what a group of data sets has on the network, and says so.

  A file that is there is left as it is; one that cannot be fetched does not
  stop the others.
  """
  downloads = DOWNLOADS.get(group, ())
  if not downloads:
    print(f'{group}: nothing can be fetched; its files must be put there.')
  for download in downloads:
    path = manual_dir / download.path
    what = f'{path}{f" ({download.purpose})" if download.purpose else ""}'
    if path.exists():
      print(f'{group}: {what} is there already', flush=True)
      continue
    try:
      digest = fetch(download, path)
    except UserError as error:
      print(f'{group}: NOT FETCHED: {error}', flush=True)
      continue
    checked = 'checksum verified' if download.sha256 else 'no checksum is known'
    print(f'{group}: fetched {what}, {checked} ({digest[:12]})', flush=True)


def fetch(download: Download, path: pathlib.Path) -> str:
  """Fetches a file to `path`, whole or not at all; returns its SHA-256.

  Raises:
    UserError: it cannot be fetched, or has another checksum.
  """
  path.parent.mkdir(parents=True, exist_ok=True)
  try:
    with write_whole(path, 'wb') as file:
      digest = copy_from(download.address, file, path.name)
      if download.sha256 and digest != download.sha256:
        raise ValueError(
          f'its SHA-256 is {digest}, where {download.sha256} is expected'
        )
  except (OSError, http.client.HTTPException, ValueError) as error:
    if isinstance(error, urllib.error.HTTPError):
      error.close()
    reason = getattr(error, 'reason', None) or error
    raise UserError(f'{download.address}: {reason}') from error
  return digest
