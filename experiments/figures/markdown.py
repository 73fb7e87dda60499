"""Tables as Markdown."""

from collections.abc import Iterable, Sequence


def table_lines(
  header: Sequence[str], rows: Iterable[Sequence[str]]
) -> list[str]:
  """Returns the lines of a table."""
  cells = [header, ['---'] * len(header), *rows]
  return [f'| {" | ".join(row)} |' for row in cells]
