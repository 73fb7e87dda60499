"""Runs of methods as tables in Markdown, beside the paper's figures."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from experiments.published import published

Run = dict[str, Any]  # accuracy, seconds, caution
Results = dict[str, dict[str, dict[str, Run]]]  # by target, method and seed


def format_results(experiment: str, results: Results) -> list[str]:
  """Returns the tables: all targets side by side, then each by itself.

  Args:
    experiment: its name, as configs have it.
    results: the runs.
  """
  parts = [
    f'Target {target}:\n\n{_format_target(experiment, target, methods)}'
    for target, methods in results.items()
  ]
  if len(results) > 1:
    title = (
      'Accuracy (%), mean ± standard deviation over the runs; in brackets '
      "the paper's mean."
    )
    parts.insert(0, f'{title}\n\n{_format_matrix(experiment, results)}')
  return parts


def _format_matrix(experiment: str, results: Results) -> str:
  """Returns one row per method: a column per target, and their mean."""
  targets = list(results)
  lines = [
    _row(['method', *targets, 'mean']),
    '|---' * (len(targets) + 2) + '|',
  ]
  for method in dict.fromkeys(m for t in targets for m in results[t]):
    ours = [_accuracies(results[t].get(method, {})) for t in targets]
    paper = [_published_mean(experiment, method, t) for t in targets]
    cells = [
      _summarise(values) + _in_brackets(mean)
      for values, mean in zip(ours, paper, strict=True)
    ]
    if all(ours):
      mean = np.mean([np.mean(values) for values in ours])
      known = [value for value in paper if value is not None]
      theirs = float(np.mean(known)) if len(known) == len(paper) else None
      cells.append(f'{mean:.1f}{_in_brackets(theirs)}')
    else:
      cells.append('')
    lines.append(_row([method, *cells]))
  return '\n'.join(lines) + '\n'


def _format_target(
  experiment: str, target: str, methods: dict[str, dict[str, Run]]
) -> str:
  lines = [
    _row(['method', 'accuracy (%)', 'paper (%)', 'runs', 'median seconds', '']),
    '|---' * 6 + '|',
  ]
  for method, by_seed in methods.items():
    runs = list(by_seed.values())
    seconds = np.median([run['seconds'] for run in runs])
    figure = published(experiment, method, target)
    cells = [
      method,
      _summarise(_accuracies(by_seed)),
      f'{figure[0]} ± {figure[1]}' if figure else '',
      str(len(runs)),
      f'{seconds:.0f}',
      runs[-1]['caution'],
    ]
    lines.append(_row(cells))
  return '\n'.join(lines) + '\n'


def _row(cells: Iterable[str]) -> str:
  return f'| {" | ".join(cells)} |'


def _accuracies(by_seed: dict[str, Run]) -> list[float]:
  return [100 * run['accuracy'] for run in by_seed.values()]


def _summarise(values: list[float]) -> str:
  """Returns mean ± sample standard deviation; of a single run, the mean."""
  if not values:
    return ''
  deviation = f' ± {np.std(values, ddof=1):.1f}' if len(values) > 1 else ''
  return f'{np.mean(values):.1f}{deviation}'


def _published_mean(experiment: str, method: str, target: str) -> float | None:
  figure = published(experiment, method, target)
  return figure[0] if figure else None


def _in_brackets(value: float | None) -> str:
  return f' ({value:.1f})' if value is not None else ''
