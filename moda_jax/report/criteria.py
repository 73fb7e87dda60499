"""What criteria without target labels say, beside the oracle."""

from collections.abc import Sequence

from moda_jax.report import curves
from moda_jax.report.html import escape, figure, grid, table
from moda_jax.report.palette import style
from moda_jax.report.runs import ReportedRun
from moda_jax.selection.criteria import CRITERIA
from moda_jax.training.evaluation import ACCURACY
from moda_jax.training.judging import EFFECTIVE_CLASSES, metric
from moda_jax.training.kept import order_evaluations
from moda_jax.training.progress import format_accuracy
from moda_jax.training.recorded import read_recorded

_ORACLE = 'oracle: accuracy, by target labels'
_NONE = '–'


def show_criteria(run: ReportedRun) -> str:
  """Returns the section of one run: what each criterion would choose."""
  judged = _find_judged(run)
  if not judged:
    return ''
  known = [name for name in CRITERIA if metric(name) in judged[-1]]
  drawn = [
    figure(
      curves.draw_metric(name, run.metrics, metric(name), style(place)),
      name,
      _describe_direction(name),
    )
    for place, name in enumerate(known)
  ]
  return (
    '<h2>Choosing without target labels</h2>'
    f'<p class="note">{escape(_explain(run))}</p>'
    + _tabulate_evaluations(run, judged, known)
    + grid(drawn)
  )


def show_candidates(shown: Sequence[ReportedRun]) -> str:
  """Returns a table of what the criteria say of each of several runs."""
  lines = {run.name: _find_taken(run) for run in shown}
  known = [
    name
    for name in CRITERIA
    if any(metric(name) in line for line in lines.values())
  ]
  if not known:
    return ''
  rows = []
  for run in shown:
    line = lines[run.name]
    cells = [_show_value(line, metric(name)) for name in known]
    rows.append([escape(run.name), *cells, _show_oracle(line)])
  header = [f'{name}, {_describe_direction(name)}' for name in known]
  folders = ' '.join(str(run.workdir) for run in shown)
  return (
    '<h2>Choosing without target labels</h2>'
    + table(['run', *header, _ORACLE], rows)
    + '<p class="note">What to choose, with the agreement of all runs: '
    f'<code>python -m moda_jax.select {escape(folders)}</code></p>'
  )


def _find_judged(run: ReportedRun) -> list[dict[str, float]]:
  return [line for line in run.metrics if EFFECTIVE_CLASSES in line]


def _find_taken(run: ReportedRun) -> dict[str, float]:
  """Returns the evaluation of the state that the run is used with."""
  judged = _find_judged(run)
  if run.state is not None:
    judged = [line for line in judged if line['step'] == int(run.state.step)]
  return judged[-1] if judged else {}


def _describe_direction(name: str) -> str:
  larger = CRITERIA[name].higher_is_better
  return 'larger is better' if larger else 'smaller is better'


def _explain(run: ReportedRun) -> str:
  text = (
    'From predictions for at most 2,000 training examples of the target, '
    'without their labels. What the oracle says of the step that a criterion '
    'prefers is shown beside it; it chooses nothing.'
  )
  criterion = run.config.run.get('selection', '')
  if criterion and run.state is not None:
    text += f' Taken by {criterion}: step {int(run.state.step):,}.'
  *most, last = [n for n, c in CRITERIA.items() if c.needs_held]
  if not run.config.data.get('holdout', 0):
    text += f' {", ".join(most)} and {last} need holdout above 0.'
  return text


def _tabulate_evaluations(
  run: ReportedRun, judged: list[dict[str, float]], known: Sequence[str]
) -> str:
  recorded = read_recorded(run.workdir).inputs
  classes = len(recorded.classes) if recorded else 0
  by_step = {line['step']: line for line in judged}
  rows = []
  for name in known:
    best = order_evaluations(judged, name, classes)[:1]
    chosen = by_step[best[0]] if best else {}
    rows.append(
      [
        f'{escape(name)}, {_describe_direction(name)}',
        _show_value(judged[-1], metric(name)),
        f'{best[0]:,}' if best else 'none: collapsed onto few classes',
        _show_value(chosen, metric(name)),
        _show_oracle(chosen),
      ]
    )
  if ACCURACY in judged[-1]:
    best_line = max(judged, key=lambda line: line.get(ACCURACY, 0))
    rows.append(
      [
        f'<i>{_ORACLE}</i>',
        _show_oracle(judged[-1]),
        f'{best_line["step"]:,}',
        '',
        _show_oracle(best_line),
      ]
    )
  header = ['criterion', 'last', 'prefers step', 'value there', _ORACLE]
  return table(header, rows)


def _show_value(line: dict[str, float], name: str) -> str:
  return f'{line[name]:.4g}' if name in line else _NONE


def _show_oracle(line: dict[str, float]) -> str:
  return format_accuracy(line[ACCURACY]) if ACCURACY in line else _NONE
