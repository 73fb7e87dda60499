"""The page of a run: what it was, how it went, what it saw."""

import logging
import os
import pathlib
import time
from collections.abc import Mapping, Sequence

from moda_jax.files.atomic import write_whole
from moda_jax.objectives import name_method
from moda_jax.report import comparison, criteria, curves, html, runs, sections
from moda_jax.report.palette import run_styles
from moda_jax.report.runs import ReportedRun
from moda_jax.training.experiment import Experiment
from moda_jax.training.outcome import Outcome

_log = logging.getLogger(__name__)
_PAGE = 'index.html'
_REFRESH = 20  # seconds until a browser looks again, while training goes on
_PATIENCE = 20  # a page that takes a second to write waits for so many


def write_run_page(
  outcome: Outcome, workdir: str | os.PathLike
) -> pathlib.Path:
  """Writes `report/index.html` into the run's folder; returns its path."""
  name = name_method(outcome.experiment.config.objective)
  folder = pathlib.Path(workdir)
  return write_page(folder / 'report', {name: (outcome, folder)})


def is_complete(workdir: pathlib.Path) -> bool:
  """Says whether a run has a page that was written at the end of training."""
  page = workdir / 'report' / _PAGE
  return page.is_file() and html.REFRESH not in page.read_text(encoding='utf-8')


def write_page(
  folder: pathlib.Path,
  outcomes: Mapping[str, tuple[Outcome, pathlib.Path]],
) -> pathlib.Path:
  """Writes the page of one run or of several that were just trained.

  Args:
    folder: gets `index.html`, made if missing.
    outcomes: name to outcome and workdir.
  """
  shown = [
    runs.from_outcome(name, outcome, workdir)
    for name, (outcome, workdir) in outcomes.items()
  ]
  return write_runs(folder, shown)


def write_runs(
  folder: pathlib.Path, shown: Sequence[ReportedRun]
) -> pathlib.Path:
  """Writes the page of runs; returns its path."""
  training = any(run.experiment and not run.state for run in shown)
  text = html.document(
    sections.find_title(shown),
    [*_overview(shown), *_each_run(shown)],
    refresh=_REFRESH if training else 0,
  )
  folder.mkdir(parents=True, exist_ok=True)
  with write_whole(folder / _PAGE) as file:
    file.write(text)
  return folder / _PAGE


def _overview(shown: Sequence[ReportedRun]) -> list[str]:
  """Returns what concerns all runs: title, verdict, results, differences."""
  parts = [sections.show_title(shown)]
  for sentence in comparison.judge(shown):
    parts.append(f'<p class="verdict">{html.escape(sentence)}</p>')
  several = len(shown) > 1
  if all(comparison.last_accuracy(run) is None for run in shown):
    parts.append('<p>The target has no labels: there is no accuracy.</p>')
    return [*parts, criteria.show_candidates(shown)] if several else parts
  target = html.escape(shown[-1].config.data.target)
  parts.append(f'<h2>Accuracy on the target {target}</h2>')
  parts.append(comparison.show_results(shown))
  lines = {
    run.name: run.metrics
    for run in shown
    if comparison.last_accuracy(run) is not None
  }
  styles = run_styles({run.name: run.method for run in shown})
  drawn = curves.draw_accuracy(lines, styles)
  parts.append(html.grid([html.figure(drawn, 'Target accuracy over time')]))
  if several:
    parts.append(criteria.show_candidates(shown))
    parts.append('<h2>What the runs differ in</h2>')
    parts.append(comparison.show_differences(shown))
  return parts


def _each_run(shown: Sequence[ReportedRun]) -> list[str]:
  if len(shown) == 1:
    return sections.show_run(shown[0])
  parts = []
  for run in shown:
    opened = ' open' if run is shown[-1] else ''
    parts.append(
      f'<details{opened}><summary><h2 style="display:inline;border:0">'
      f'{html.escape(run.name)}</h2></summary>'
    )
    parts += [*sections.show_run(run), '</details>']
  return parts


class PageWriter:
  """Refreshes a run's page while it trains, for at most a twentieth of it."""

  def __init__(self):
    self._next = 0.0

  def __call__(self, experiment: Experiment, workdir: pathlib.Path) -> None:
    """Writes the page, unless the last one was written too recently."""
    start = time.monotonic()
    if start < self._next:
      return
    name = name_method(experiment.config.objective)
    run = runs.in_training(name, experiment, workdir)
    try:
      write_runs(workdir / 'report', [run])
    except OSError as error:  # training is worth more than its page
      _log.warning('the page could not be written: %s', error)
    end = time.monotonic()
    self._next = end + _PATIENCE * (end - start)
