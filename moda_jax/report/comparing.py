"""Trains several methods, looks at them, and writes what was found."""

import logging
import pathlib
from collections.abc import Sequence

import ml_collections

from moda_jax.data.domains import Domain
from moda_jax.errors import NonFiniteError, UserError
from moda_jax.report import choice_page, compared, worth
from moda_jax.report.candidates import (
  Looked,
  find_written,
  forget_sources,
  look,
  sample,
)
from moda_jax.report.choice import Choice, choose
from moda_jax.report.compared import Compared
from moda_jax.report.page import PageWriter, is_complete, write_run_page
from moda_jax.training import loop, same_budget
from moda_jax.training.outcome import Outcome
from moda_jax.training.same_budget import BASELINE, Plan
from moda_jax.training.variants import parse_variant

_log = logging.getLogger(__name__)


def compare(
  config: ml_collections.ConfigDict,
  folder: pathlib.Path,
  methods: Sequence[str],
  leave_one_out: bool = False,
) -> tuple[pathlib.Path, Choice]:
  """Trains what is not trained yet, chooses, and writes all files.

  Args:
    config: of all runs, but for the method.
    folder: gets a folder for every run, the page and its files.
    methods: beside `source_only`, see `variants.parse_variant`.
    leave_one_out: whether the chosen method is also trained without each
      source.

  Returns:
    The path of the page, and the choice.
  """
  if leave_one_out and len(config.data.sources) < 2:
    raise UserError('--leave_one_out needs at least 2 sources; there is 1.')
  plan = same_budget.plan(config, methods)
  runs = _Runs(folder)
  for method, own in plan.configs.items():
    runs.train(method, folder / parse_variant(method).folder, own, plan)
  choice = choose(runs.looked, runs.failed)
  _log.info('%s', choice.verdict)
  left_out = None
  if leave_one_out and choice.name:
    left_out = _leave_out(runs, plan, choice.name)
  found = _gather(plan, runs, choice)._replace(left_out=left_out)
  compared.write_files(found, folder)
  return choice_page.write_page(found, folder), choice


class _Runs:
  """Runs that are trained one after the other.

  Attributes:
    looked: those that have finished.
    failed: why others have not, by name.
    sampled: the target's examples that all are judged by.
    written: the target's examples that are predicted.
    sources: the training examples of the first run.
  """

  def __init__(self, folder: pathlib.Path):
    self.folder = folder
    self.looked: list[Looked] = []
    self.failed: dict[str, str] = {}
    self.sampled: Domain
    self.written: Domain
    self.sources: tuple[Domain, ...] = ()

  def train(
    self,
    name: str,
    workdir: pathlib.Path,
    config: ml_collections.ConfigDict,
    plan: Plan,
  ) -> None:
    """Trains a run, or takes it as it is, and looks at it."""
    _log.info('run %s in %s', name, workdir)
    try:
      outcome = loop.train(config, workdir, plan.whole, on_log=PageWriter())
    except NonFiniteError as error:
      _log.warning('%s has not finished: %s', name, error)
      self.failed[name] = f'it has not finished: {error}'
      return
    if not is_complete(workdir):
      write_run_page(outcome, workdir)
    if not self.looked:
      self._keep_examples(outcome)
    self.looked.append(look(name, outcome, workdir))

  def _keep_examples(self, outcome: Outcome) -> None:
    self.sampled = sample(outcome)
    self.written = find_written(outcome)
    self.sources = outcome.experiment.domains.sources


def _leave_out(
  runs: _Runs, plan: Plan, method: str
) -> tuple[list[Looked], Choice]:
  """Trains a method without each source; ranks these runs and the whole one."""
  whole = next(run for run in runs.looked if run.name == method)
  without = _Runs(runs.folder)
  without.looked.append(whole._replace(name='all sources'))
  for source in plan.configs[method].data.sources:
    part = plan.without(method, source)
    workdir = runs.folder / f'without_{source}'
    without.train(f'without {source}', workdir, part.configs[method], part)
  looked = [forget_sources(run) for run in without.looked]
  return looked, choose(looked, without.failed)


def _gather(plan: Plan, runs: _Runs, choice: Choice) -> Compared:
  config, looked = plan.configs[BASELINE], runs.looked
  order = choice.ranking.orders.get(choice.ranking.criterion, ())
  weighted = worth.find_weighted(looked, order)
  chosen = [run for run in looked if run.name == choice.name]
  return Compared(
    config=config,
    looked=looked,
    choice=choice,
    worth=worth.value_sources(looked, choice.name, order),
    weighted=weighted.name if weighted else '',
    shares=compared.find_shares(runs.sources),
    classes=worth.estimate_classes(chosen[0]) if chosen else None,
    sampled=runs.sampled,
    written=runs.written,
    to_label=compared.find_to_label(
      looked, choice, runs.sampled, config.data.target_labels
    ),
  )
