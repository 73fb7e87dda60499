"""The look of all figures: one colour per method and per domain.

The colours are those of Okabe and Ito, which people with any kind of colour
blindness can tell apart. Variants of a method share its colour and differ in
line and marker.
"""

import csv
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from moda_jax.files.atomic import write_whole

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

BLACK, ORANGE, SKY, GREEN = '#000000', '#E69F00', '#56B4E9', '#009E73'
YELLOW, BLUE, VERMILION, PURPLE = '#F0E442', '#0072B2', '#D55E00', '#CC79A7'
GREY, BROWN = '#7F7F7F', '#8C510A'


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


METHODS = {
  'source_only': Look('source only', GREY, '-', 's'),
  'dann_ss': Look('DANN-SS', SKY, '--', 'v'),
  'dann_ms': Look('DANN-MS', SKY, '-', 'o'),
  'mada': Look('MADA', BROWN, '-', 'D'),
  'mada_ss': Look('MADA-SS', BROWN, '--', 'v'),
  'mdan': Look('MDAN', BLUE, '-', 's'),
  'mdan_max': Look('MDAN (max)', BLUE, '--', 'v'),
  'mdan_fm': Look('MDAN-FM', BLUE, ':', '^'),
  'moe': Look('MoE', PURPLE, '-', 'P'),
  'm3sda': Look('M³SDA', PURPLE, '--', 'X'),
  'moda': Look('MODA', ORANGE, '-', '^'),
  'fm': Look('FM', GREEN, '-', 'D'),
  'moda_fm': Look('MODA-FM', VERMILION, '-', 'o'),
  'moda_fm_floored': Look('MODA-FM, floor', VERMILION, '--', 'v'),
  'moda_fm_relative': Look('MODA-FM, relative', VERMILION, ':', '^'),
  'moda_fm_projected': Look('MODA-FM, projected', VERMILION, '-.', 's'),
  'moda_fm_darn': Look('MODA-FM, DARN', VERMILION, (0, (5, 1, 1, 1)), 'D'),
  'supervised': Look('supervised', BLACK, '-', '*'),
}
_DOMAINS = {
  'mnist': ('MNIST', BLUE),
  'mnistm': ('MNIST-M', ORANGE),
  'svhn': ('SVHN', GREEN),
  'synth': ('SynthDigits', VERMILION),
  'uci': ('UCI digits', PURPLE),
  'amazon': ('Amazon', BLUE),
  'dslr': ('DSLR', ORANGE),
  'webcam': ('Webcam', GREEN),
  'books': ('Books', BLUE),
  'dvd': ('DVD', ORANGE),
  'electronics': ('Electronics', GREEN),
  'kitchen': ('Kitchen', VERMILION),
}


def method_look(method: str) -> Look:
  """Returns how a method is drawn; one that is not known in grey."""
  return METHODS.get(method, Look(method, GREY, ':', 'x'))


def domain_name(domain: str) -> str:
  """Returns the name of a domain as papers write it."""
  return _DOMAINS.get(domain, (domain, GREY))[0]


def domain_color(domain: str) -> str:
  """Returns the colour of a domain."""
  return _DOMAINS.get(domain, (domain, GREY))[1]


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
  figure.suptitle(title, fontsize=7.5, color=GREY, wrap=True)
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
