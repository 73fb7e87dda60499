"""One colour, dash and marker per domain and method, in every picture.

The colours are Okabe and Ito's, which stay apart whatever one's colour vision;
dashes and markers tell the rest, in print too. Yellow is left out: it cannot be
read on white.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

BLUE = '#0072B2'
ORANGE = '#E69F00'
GREEN = '#009E73'
VERMILION = '#D55E00'
PURPLE = '#CC79A7'
SKY = '#56B4E9'
BLACK = '#000000'
GREY = '#767676'
COLOURS = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, BLACK)
# Of matrices and pictures; the same in black and white.
SEQUENTIAL = 'Blues'

_SOLID, _DASHED, _DOTTED, _MIXED, _LONG = '-', '--', ':', '-.', (0, (8, 2))
_DASHES = (_SOLID, _DASHED, _DOTTED, _MIXED, _LONG)
_MARKERS = ('o', 's', '^', 'D', 'v', 'P', 'X')


class Style(NamedTuple):
  """How a line or a cloud of points is drawn.

  Attributes:
    colour: as `#RRGGBB`.
    dash: matplotlib's `linestyle`.
    marker: matplotlib's `marker`.
  """

  colour: str
  dash: str | tuple[int, tuple[int, ...]]
  marker: str


_METHODS = {
  'source_only': Style(BLACK, _SOLID, 's'),
  'supervised': Style(BLACK, _DOTTED, 'D'),
  'dann_ms': Style(SKY, _SOLID, '^'),
  'dann_ss': Style(SKY, _DASHED, '^'),
  'mada': Style(GREY, _SOLID, 'v'),
  'mada_ss': Style(GREY, _DASHED, 'v'),
  'mdan': Style(GREEN, _SOLID, 'P'),
  'mdan_max': Style(GREEN, _DASHED, 'P'),
  'mdan_fm': Style(GREEN, _DOTTED, 'P'),
  'moe': Style(ORANGE, _SOLID, 'X'),
  'm3sda': Style(ORANGE, _DASHED, 'X'),
  'dael': Style(ORANGE, _DOTTED, 'X'),
  'moda': Style(BLUE, _SOLID, 'o'),
  'fm': Style(PURPLE, _SOLID, 'D'),
  'moda_fm': Style(VERMILION, _SOLID, 'o'),
  'moda_fm_floored': Style(VERMILION, _DASHED, '^'),
  'moda_fm_relative': Style(VERMILION, _DOTTED, 'v'),
  'moda_fm_projected': Style(VERMILION, _MIXED, 's'),
  'moda_fm_darn': Style(VERMILION, _LONG, 'D'),
}


def style(place: int) -> Style:
  """Returns the style of the thing at a place among others."""
  count = len(COLOURS)
  return Style(
    COLOURS[place % count],
    _DASHES[place // count % len(_DASHES)],
    _MARKERS[(place + place // count) % len(_MARKERS)],
  )


def domain_styles(names: Iterable[str]) -> dict[str, Style]:
  """Returns each domain's style.

  They go by the alphabet, so the domains of an experiment have the same colours
  whichever of them is the target.
  """
  return {name: style(i) for i, name in enumerate(sorted(set(names)))}


def class_styles(names: Iterable[str]) -> dict[str, Style]:
  """Returns each class's style, in the order given."""
  return {name: style(i) for i, name in enumerate(names)}


def method_style(method: str) -> Style:
  """Returns a method's style; grey for one that is not known here."""
  return _METHODS.get(method, Style(GREY, _MIXED, 'o'))


def run_styles(methods: Mapping[str, str]) -> dict[str, Style]:
  """Returns each run's style: its method's colour, a dash of its own.

  Args:
    methods: the name of the run to its method.
  """
  seen: dict[str, int] = {}
  styles = {}
  for run, method in methods.items():
    place = seen.get(method, 0)
    seen[method] = place + 1
    own = method_style(method)
    if place:
      own = own._replace(
        dash=_DASHES[place % len(_DASHES)],
        marker=_MARKERS[place % len(_MARKERS)],
      )
    styles[run] = own
  return styles
