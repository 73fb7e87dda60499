"""The figures of a benchmark as one picture."""

import os
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from moda_jax.report import palette

_COLOURS = (
  palette.BLUE,
  palette.SKY,
  palette.VERMILION,
  palette.ORANGE,
  palette.PURPLE,
)


def write_plot(path: str | os.PathLike, parts: dict[str, Any]) -> None:
  """Draws steps against PyTorch's, and growth, as far as they were measured."""
  make_figure(parts).savefig(path, dpi=120)


def make_figure(parts: dict[str, Any]) -> Figure:
  """Returns what `write_plot` writes."""
  cases = {k: v for k, v in parts.items() if 'against_live' in v}
  height = 1.5 + 0.8 * max(3, len(cases))
  figure = Figure((12, height), layout='constrained')
  left, right = figure.subplots(1, 2, width_ratios=(3, 2))
  _draw_ratios(left, cases)
  _draw_growth(right, parts.get('growth', {}))
  return figure


def _draw_ratios(axes: Axes, cases: dict[str, Any]) -> None:
  """Draws a bar per contestant and case: its time over ours, live."""
  names = list(dict.fromkeys(n for c in cases.values() for n in c['seconds']))
  height = 0.8 / max(1, len(names))
  for place, name in enumerate(names):
    for row, case in enumerate(cases.values()):
      if name not in case['against_live']:
        continue
      ratio = case['against_live'][name]
      median = ratio['median']
      axes.barh(
        row + place * height,
        median,
        0.9 * height,
        xerr=[[median - ratio['least']], [ratio['most'] - median]],
        color=_COLOURS[place % len(_COLOURS)],
        label=name if row == 0 else None,
      )
      milliseconds = 1e3 * case['seconds'][name]['median']
      # Beyond the error bar, and beyond the line at 1.
      axes.annotate(
        f'{milliseconds:,.0f} ms',
        (max(1, ratio['most']), row + place * height),
        xytext=(4, 0),
        textcoords='offset points',
        va='center',
        fontsize=7,
      )
  axes.set_yticks(
    [row + 0.4 - height / 2 for row in range(len(cases))],
    [case['title'].replace(', ', '\n') for case in cases.values()],
    fontsize=8,
  )
  axes.invert_yaxis()
  axes.set_xlim(right=1.1 * axes.get_xlim()[1])  # room for the longest's text
  axes.axvline(1, color='black', linewidth=0.8)
  axes.set_xlabel('time of a step over that of moda_jax, live (less is faster)')
  if cases:
    axes.legend(fontsize=7)


def _draw_growth(axes: Axes, growth: dict[str, Any]) -> None:
  """Draws the time of a step over its images."""
  series_names = [name for name in growth if name != 'width']
  for place, name in enumerate(series_names):
    members = growth[name]['members'].values()
    axes.plot(
      [m['images'] for m in members],
      [1e3 * m['seconds']['median'] for m in members],
      'os'[place % 2] + '-',
      color=_COLOURS[2 * place],
      label=f'{name} {", ".join(growth[name]["members"])}',
    )
  axes.set_xlabel('images in a step')
  axes.set_ylabel('ms/step')
  axes.set_xlim(left=0)
  axes.set_ylim(bottom=0)
  if series_names:
    axes.set_title(f'digits at width {growth["sources"]["width"]:g}')
    axes.legend(fontsize=8)
