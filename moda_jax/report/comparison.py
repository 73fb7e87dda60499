"""Figures of runs beside each other, and whether adaptation helped."""

import json
import math
from collections.abc import Sequence

from moda_jax.objectives import find_method
from moda_jax.report.html import escape, table
from moda_jax.report.runs import ReportedRun
from moda_jax.training.evaluation import ACCURACY, DEVIATION
from moda_jax.training.progress import format_accuracy
from moda_jax.training.recorded import flatten

_BASELINE = 'source_only'
_BOUND = 1.96  # standard errors, 95 %


def last_accuracy(run: ReportedRun) -> float | None:
  """Returns the accuracy of the last evaluation; None without labels.

  Where the run has chosen an evaluation by a criterion, it is that one.
  """
  line = _last_evaluation(run)
  return line[ACCURACY] if line else None


def _last_evaluation(run: ReportedRun) -> dict[str, float]:
  """Returns the last evaluation of the run's state; empty without labels."""
  found = [line for line in run.metrics if ACCURACY in line]
  if run.state is not None and run.config.run.get('selection', ''):
    step = int(run.state.step)
    found = [line for line in found if line['step'] <= step]
  return found[-1] if found else {}


def show_results(runs: Sequence[ReportedRun]) -> str:
  """Returns a table of the accuracies, each seed's and predictor's too."""
  rows = [row for run in runs for row in _rows(run)]
  header = ['method', 'last evaluation']
  note = 'best over time <span class="note">(chosen with target labels)</span>'
  return table([*header, note, ''], rows)


def _rows(run: ReportedRun) -> list[tuple[str, ...]]:
  evaluated = [line for line in run.metrics if ACCURACY in line]
  name = escape(run.name)
  if not evaluated:
    return [(name, 'no labels', '', '')]
  last = _last_evaluation(run)
  best = max(line[ACCURACY] for line in evaluated)
  shown = format_accuracy(last[ACCURACY], last.get(DEVIATION))
  rows: list[tuple[str, ...]] = [
    (name, shown, f'{100 * best:.2f} %', escape(_caution(run)))
  ]
  prefix = f'{ACCURACY}/'
  for key, value in last.items():
    part = key.removeprefix(prefix)
    if key.startswith(prefix):
      seed = part.removeprefix('seed_')
      shown = f' from {part}' if seed == part else f', seed {seed}'
      rows.append((name + escape(shown), format_accuracy(value), '', ''))
  return rows


def _caution(run: ReportedRun) -> str:
  if run.experiment is not None:
    return run.experiment.method.caution
  spec = find_method(run.config.objective).batch_spec
  return 'trained on target labels' if spec.target_labels else ''


def judge(runs: Sequence[ReportedRun]) -> list[str]:
  """Returns a sentence per run: did it help, against source-only."""
  known = {r.name: a for r in runs if (a := last_accuracy(r)) is not None}
  baselines = [r for r in runs if r.method == _BASELINE and r.name in known]
  others = [r for r in runs if r.method != _BASELINE and r.name in known]
  if not known:
    return []
  if not baselines:
    return [
      'Whether adaptation helped cannot be said without a run of '
      'method=source_only: python -m moda_jax.report '
      f'{others[-1].workdir} SOURCE_ONLY_RUN compares the two.'
    ]
  return [
    _judge_one(run, baselines[0], known)
    for run in others
    if run.config.data.target == baselines[0].config.data.target
  ]


def _judge_one(
  run: ReportedRun, baseline: ReportedRun, known: dict[str, float]
) -> str:
  accuracy, before = known[run.name], known[baseline.name]
  gain = 100 * (accuracy - before)
  count = run.experiment.domains.test.size if run.experiment else 0
  text = (
    f'{100 * accuracy:.1f} % with {run.name}, {100 * before:.1f} % with '
    f'{baseline.name}: '
  )
  by_chance = 0.0
  if count:
    variance = accuracy * (1 - accuracy) + before * (1 - before)
    by_chance = 100 * _BOUND * math.sqrt(variance / count)
  if abs(gain) <= by_chance:
    text += (
      f'a difference of {gain:+.1f} points, too small for {count:,} examples '
      f'to tell from chance (±\u00a0{by_chance:.1f}).'
    )
  else:
    verdict = 'adaptation helped' if gain > 0 else 'adaptation did harm'
    text += f'{verdict}, by {abs(gain):.1f} points'
    text += (
      f' (±\u00a0{by_chance:.1f} for {count:,} examples).' if count else '.'
    )
  if run.config.run.seeds == 1:
    text += ' One seed: another one can differ.'
  return text


def show_differences(runs: Sequence[ReportedRun]) -> str:
  """Returns a table of the values in which the runs' configs differ."""
  flat = [flatten(json.loads(run.config.to_json())) for run in runs]
  keys = sorted({key for values in flat for key in values})
  rows = []
  for key in keys:
    values = [values.get(key, '–') for values in flat]
    if any(value != values[0] for value in values):
      rows.append([escape(key), *(escape(str(value)) for value in values)])
  return table(['', *(escape(run.name) for run in runs)], rows)
