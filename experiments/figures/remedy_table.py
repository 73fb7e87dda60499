"""Ways to weigh the sources, chosen by held-out sources: table and figure."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from experiments.figures import style
from experiments.figures.markdown import table_lines
from moda_jax.errors import UserError
from moda_jax.files.atomic import write_whole
from moda_jax.report import palette


class Row(NamedTuple):
  """What the runs of one way have found, means over seeds.

  Attributes:
    name: of the way, as in the table.
    is_equal: whether it is equal weights, for comparison, which are not chosen.
    held_out: accuracy (%) on each source that was the target.
    effective: 1/Σα² at the end over the number of sources, mean over those.
    target: accuracy (%) on the target itself; None where it was not trained.
    alpha: α at the end of that.
  """

  name: str
  is_equal: bool
  held_out: Mapping[str, float]
  effective: float
  target: float | None
  alpha: Mapping[str, float]

  @property
  def mean(self) -> float:
    """The mean accuracy (%) over held-out sources, which chooses."""
    return float(np.mean(list(self.held_out.values())))


def write(
  title: str,
  target: str,
  length: str,
  rows: Sequence[Row],
  path: pathlib.Path,
) -> list[pathlib.Path]:
  """Writes the table and draws a point for each row and column.

  Args:
    title: of table and figure.
    target: of the study.
    length: of the runs towards it; empty without any.
    rows: the ways, in order.
    path: of the files, without their endings.
  """
  chosen = choose(rows)
  header = ['weights', *chosen.held_out, 'mean', '1/Σα² per source']
  header += [target, f'α on {target}']
  table = [_cells(row) for row in rows]
  caption = (
    f'{title}. Accuracy (%) on each source that was the target, without '
    f'{target}, and their mean, which chooses: {chosen.name}. '
    f'{_compare_with_equal(rows, chosen)}{target} itself, '
    f'{length or "not trained yet"}, is only reported.'
  )
  return [
    _write_markdown(path, caption, header, table),
    style.write_csv(path, header, table),
    *style.save(_draw_points(title, target, length, rows), path),
  ]


def choose(rows: Sequence[Row]) -> Row:
  """Returns the row of the highest mean, equal weights aside."""
  remedies = [row for row in rows if not row.is_equal]
  if not remedies:
    raise UserError('No remedy has all its runs with a source held out yet.')
  return max(remedies, key=lambda row: row.mean)


def _compare_with_equal(rows: Sequence[Row], chosen: Row) -> str:
  """Returns a sentence that says where equal weights beat what is chosen."""
  higher = []
  for row in (row for row in rows if row.is_equal):
    higher += [k for k, v in chosen.held_out.items() if row.held_out[k] > v]
    higher += ['the mean'] * (row.mean > chosen.mean)
  if not higher:
    return ''
  where = ' and '.join(filter(None, [', '.join(higher[:-1]), higher[-1]]))
  return (
    f'Equal weights, which take no part in the choice, are higher on {where}. '
  )


def _cells(row: Row) -> list[str]:
  alpha = ', '.join(f'{k} {v:.2f}' for k, v in row.alpha.items())
  return [
    row.name,
    *(f'{value:.1f}' for value in row.held_out.values()),
    f'{row.mean:.1f}',
    f'{row.effective:.2f}',
    '' if row.target is None else f'{row.target:.1f}',
    alpha,
  ]


def _write_markdown(
  path: pathlib.Path,
  caption: str,
  header: Sequence[str],
  table: Sequence[Sequence[str]],
) -> pathlib.Path:
  path = path.with_name(f'{path.name}.md')
  with write_whole(path) as file:
    file.write('\n'.join([caption, '', *table_lines(header, table), '']))
  return path


def _draw_points(
  title: str, target: str, length: str, rows: Sequence[Row]
) -> Figure:
  figure, (axes,) = style.make_panels(1, title, (5.2, 0.6 + 0.3 * len(rows)))
  places = range(len(rows))
  for name in rows[0].held_out:
    values = [row.held_out[name] for row in rows]
    label = f'{style.domain_name(name)} held out'
    axes.plot(values, places, 'o', color=style.domain_color(name), label=label)
  means = [row.mean for row in rows]
  axes.plot(means, places, '|', color=palette.BLACK, ms=12, label='their mean')
  reached = [(r.target, p) for r, p in zip(rows, places, strict=True)]
  known = [(value, place) for value, place in reached if value is not None]
  if known:
    label = f'{style.domain_name(target)}, {length}, only reported'
    axes.plot(*zip(*known, strict=True), 'x', color=palette.GREY, label=label)
  axes.set_yticks(places, [row.name for row in rows])
  axes.set_ylim(len(rows) - 0.4, -0.6)
  axes.set_xlabel('accuracy (%)')
  figure.legend(loc='outside lower center', ncols=3)
  return figure
