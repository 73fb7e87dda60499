"""The look of all figures: one colour per method and per domain.

The colours are those of `moda_jax.report.palette`, as on the page of a run.
Variants of a method share its colour and differ in line and marker.
"""

import csv
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from moda_jax.files.atomic import write_whole
from moda_jax.report import palette

matplotlib.use('Agg')  # no display is needed, nor ever opened
matplotlib.rcParams.update(
  {
    'font.size': 9,
    'axes.titlesize': 9,
    'legend.fontsize': 8,
    'legend.frameon': False,
    'axes.spines.top': False,
    'axes.spines.right': False,
    'axes.grid': True,
    'axes.axisbelow': True,
    'grid.alpha': 0.3,
    'lines.linewidth': 1.4,
    'lines.markersize': 4.5,
    'pdf.fonttype': 42,  # letters, not outlines
    'savefig.dpi': 200,
  }
)
PANEL = (2.7, 2.4)  # inches; three of them fill a page


class Look(NamedTuple):
  """How a method is drawn.

  Attributes:
    name: as papers write it.
    color: a colour of the palette.
    line: the style of its line.
    marker: of its points.
  """

  name: str
  color: str
  line: Any = '-'
  marker: str = 'o'


METHOD_NAMES = {
  'source_only': 'source only',
  'dann_ss': 'DANN-SS',
  'dann_ms': 'DANN-MS',
  'mada': 'MADA',
  'mada_ss': 'MADA-SS',
  'mdan': 'MDAN',
  'mdan_max': 'MDAN (max)',
  'mdan_fm': 'MDAN-FM',
  'moe': 'MoE',
  'm3sda': 'M³SDA',
  'moda': 'MODA',
  'fm': 'FM',
  'moda_fm': 'MODA-FM',
  'moda_fm_floored': 'MODA-FM, floor',
  'moda_fm_relative': 'MODA-FM, relative',
  'moda_fm_projected': 'MODA-FM, projected',
  'moda_fm_darn': 'MODA-FM, DARN',
  'dael': 'DAEL',
  'supervised': 'supervised',
}
_DOMAINS = {
  'mnist': ('MNIST', palette.BLUE),
  'mnistm': ('MNIST-M', palette.ORANGE),
  'svhn': ('SVHN', palette.GREEN),
  'synth': ('SynthDigits', palette.VERMILION),
  'uci': ('UCI digits', palette.PURPLE),
  'amazon': ('Amazon', palette.BLUE),
  'dslr': ('DSLR', palette.ORANGE),
  'webcam': ('Webcam', palette.GREEN),
  'books': ('Books', palette.BLUE),
  'dvd': ('DVD', palette.ORANGE),
  'electronics': ('Electronics', palette.GREEN),
  'kitchen': ('Kitchen', palette.VERMILION),
}


def method_look(method: str) -> Look:
  """Returns how a method is drawn; one that is not known in grey."""
  name = METHOD_NAMES.get(method, method)
  return Look(name, *palette.method_style(method))


def domain_name(domain: str) -> str:
  """Returns the name of a domain as papers write it."""
  return _DOMAINS.get(domain, (domain, palette.GREY))[0]


def domain_color(domain: str) -> str:
  """Returns the colour of a domain."""
  return _DOMAINS.get(domain, (domain, palette.GREY))[1]


def make_panels(
  count: int, title: str, size: tuple[float, float] = PANEL, **options: Any
) -> tuple[Figure, list[Axes]]:
  """Returns a figure with a row of panels, and these.

  Args:
    count: how many panels.
    title: of the figure: experiment and scale.
    size: of one panel in inches.
    **options: as of `Figure.subplots`.
  """
  width, height = size
  figure = Figure(
    (max(width * count, 3.6), height + 0.35), layout='constrained'
  )
  figure.suptitle(title, fontsize=7.5, color=palette.GREY, wrap=True)
  panels = figure.subplots(1, count, squeeze=False, **options)[0]
  return figure, list(panels)


def save(figure: Figure, path: pathlib.Path) -> list[pathlib.Path]:
  """Writes a figure as `.png` and `.pdf`; returns both paths."""
  path.parent.mkdir(parents=True, exist_ok=True)
  paths = [path.with_name(f'{path.name}.{kind}') for kind in ('png', 'pdf')]
  # Without the date, the same numbers give the same file.
  figure.savefig(paths[0], metadata={'Software': None})
  figure.savefig(paths[1], metadata={'CreationDate': None, 'Producer': None})
  return paths


def write_csv(
  path: pathlib.Path,
  header: Sequence[str],
  rows: Iterable[Sequence[object]],
) -> pathlib.Path:
  """Writes the numbers of a figure as `.csv`; returns its path."""
  path = path.with_name(f'{path.name}.csv')
  path.parent.mkdir(parents=True, exist_ok=True)
  with write_whole(path, newline='') as file:
    writer = csv.writer(file, lineterminator='\n')
    writer.writerow(header)
    writer.writerows(rows)
  return path
