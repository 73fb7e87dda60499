"""The table of a benchmark, as Markdown."""

from typing import Any

from experiments.benchmark import machine, rounds
from experiments.benchmark.parts import PARTS

_HEAD = """# Benchmark

`python -m experiments.benchmark{flags}`. The contestants of a part take turns
in one run; parts may have been measured at different times. Figures are medians
over the rounds with the least and the most in brackets, ratios are taken within
a round. The twins in PyTorch are written here from the paper: *as written* has
a forward pass per domain and view, Pillow in the main thread and reads its
losses at every step; *tuned* has one concatenated pass, channels last,
`foreach` AdaDelta and a kept batch. *Freed memory kept* is the tuned one with
the setting of glibc that our commands make for themselves. Data is random, in
the sizes of the experiments.
"""


def format_report(results: dict[str, Any]) -> str:
  """Returns the whole page: overview, every part with its machine."""
  quick = any(part['quick'] for part in results['parts'].values())
  parts = {name: part['found'] for name, part in results['parts'].items()}
  lines = [_HEAD.format(flags=' --quick' if quick else '')]
  lines += _format_overview(parts)
  shown = ''
  for name, part in PARTS.items():
    if name in parts:
      where = results['parts'][name]['machine']
      if _name_machine(where) != shown:
        shown = _name_machine(where)
        lines += [f'## On {shown}', '', *machine.format_machine(where)]
      title, *rest = part.describe(parts[name])
      lines += [title, '', machine.format_time(where), *rest]
  return '\n'.join(lines).rstrip() + '\n'


def _name_machine(where: dict[str, Any]) -> str:
  return f'{where["cpu"]}, {where["cores"]} cores'


def _format_overview(parts: dict[str, Any]) -> list[str]:
  """Returns one row per case: ours, the twins' ratios, the roofline."""
  cases = [found for found in parts.values() if 'against_live' in found]
  if not cases:
    return []
  names = list(dict.fromkeys(name for c in cases for name in c['seconds']))
  twins = [name for name in names if name.startswith('PyTorch')]
  lines = [
    '| ' + ' | '.join(['', 'ours, live, ms/step', *twins, 'roofline']) + ' |',
    '|---' * (3 + len(twins)) + '|',
  ]
  for case in cases:
    row = [case['title'], rounds.show(_find_live(case), 1e3)]
    for name in twins:
      ratio = case['against_live'].get(name)
      row.append(f'{rounds.show(ratio, digits=2)} ×' if ratio else '–')
    row.append(f'{100 * case["roofline"]["share"]:.0f} %')
    lines.append(f'| {" | ".join(row)} |')
  return [*lines, '']


def _find_live(case: dict[str, Any]) -> dict[str, float]:
  (name,) = [n for n in case['seconds'] if n.endswith('live') and 'moda' in n]
  return case['seconds'][name]
