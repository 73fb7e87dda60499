"""How the benchmark was called."""

import pathlib
from typing import NamedTuple


class Options(NamedTuple):
  """What every part needs to know.

  Attributes:
    quick: whether to take fewer rounds and smaller sizes.
    torch_python: the interpreter of PyTorch's environment; '' for none.
    folder: for files that are not kept.
  """

  quick: bool
  torch_python: str
  folder: pathlib.Path
