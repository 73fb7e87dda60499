"""Files that are there whole or not at all."""

import contextlib
import os
import pathlib
from collections.abc import Iterator
from typing import IO, Any


@contextlib.contextmanager
def write_whole(
  path: str | os.PathLike, mode: str = 'w', **options: Any
) -> Iterator[IO]:
  """Opens a file that takes its name only once everything is written.

  Whatever ends the writing early leaves what was there before. Text is UTF-8
  by default, whatever the machine's own encoding.

  Args:
    path: what the file is called in the end.
    mode: as of `open`.
    **options: as of `open`.
  """
  if 'b' not in mode:
    options.setdefault('encoding', 'utf-8')
  path = pathlib.Path(path)
  partial = path.with_name(f'{path.name}.partial')
  try:
    with partial.open(mode, **options) as file:
      yield file
    partial.replace(path)
  finally:
    partial.unlink(missing_ok=True)
