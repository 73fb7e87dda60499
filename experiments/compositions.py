r"""Methods and compositions of parts beside MODA-FM, in one table.

  python -m experiments.compositions --experiment=reviews --seeds=3
  python -m experiments.compositions --experiment=office31 --scale=features \
    --seeds=3 --compositions=moda_fm,fm,moda_fm:weights=uniform

Trains what is missing and shows, for each composition, its accuracy on every
target, how far it is from MODA-FM's at the same target and seed, and how often
it is chosen without target labels. Every part has its default values. Runs that
experiments.tables has recorded in RESULTS/<experiment>_<scale>.jsonl are shown
too; all others are recorded beside, in RESULTS/compositions_….jsonl. Lines of
old runs lack the criteria: nothing is chosen where they take part, unless
--judged trains them again. --agreement adds the criterion by which
moda_jax.select chooses by default; it reads the folders of all runs, a few
seconds each. Writes the tables as .md and .csv and draws one.
"""

import functools
import pathlib
from collections.abc import Sequence
from typing import Any

from absl import flags

from experiments.figures import composition_table
from experiments.runs import command, records
from experiments.runs.requests import Request
from experiments.runs.scales import Setting
from experiments.selection import agreeing
from moda_jax import cli
from moda_jax.data.domains import Domains
from moda_jax.errors import UserError
from moda_jax.training.variants import Variant, parse_variants

NAMED = (
  'source_only',
  'dann_ms',
  'mdan',
  'mada',
  'moe',
  'm3sda',
  'dael',
  'moda',
  'fm',
  'moda_fm',
)
# Each replaces a part of MODA-FM: softmax, dann, fixmatch, shared.
CHANGED = (
  'weights=uniform',
  'weights=smooth_max',
  'weights=projected',
  'weights=darn',
  'weights=softmax+floored',
  'alignment=none',
  'alignment=mmd',
  'alignment=cdan',
  'alignment=coral',
  'alignment=moments',
  'target_term=adamatch',
  'target_term=mcc',
  'target_term=fixmatch+mcc',
  'target_term=information',
  'target_term=entropy',
  'predictor=experts',
)
# One discriminator per class takes too long with many classes.
_FEW_CLASSES = {'mada': ('digits', 'reviews')}


def find_variants(experiment: str, chosen: Sequence[str] = ()) -> list[Variant]:
  """Returns the rows of an experiment's table.

  Args:
    experiment: its name.
    chosen: the rows instead of the default ones, as flags give them.
  """
  named = [
    name for name in NAMED if experiment in _FEW_CLASSES.get(name, experiment)
  ]
  rows = [*named, *(f'moda_fm:{changed}' for changed in CHANGED)]
  return parse_variants(chosen or rows, '--compositions')


def make_plans(variants: Sequence[Variant]) -> dict[str, list[Request]]:
  """Returns the runs of each row, by its name."""
  return {
    variant.text: command.request_runs([variant.method], variant.values)
    for variant in variants
  }


def draw(
  plans: dict[str, list[Request]],
  values: Sequence[str],
  setting: Setting,
  lines: list[records.Line],
  path: pathlib.Path,
) -> list[pathlib.Path]:
  """Writes tables and figure of the rows that have runs.

  Args:
    plans: the runs of each row.
    values: what the flags set for all of them.
    setting: the experiment at its scale.
    lines: the finished runs.
    path: of the files, without their endings.
  """
  # Of two lines of a run, the one that has criteria says more.
  lines = sorted(lines, key=lambda line: 'criteria' not in line)
  found = {
    name: [
      line
      for request in requests
      if (line := records.find_run(lines, request)) is not None
    ]
    for name, requests in plans.items()
  }
  shown = [line for own in found.values() for line in own]
  parts = f'parts at their default values{" but for " * bool(values)}'
  file = path.with_name(f'{path.name}_agreement.json')
  if flags.FLAGS['agreement'].value:
    measure_agreements(plans, file)
  agreements = agreeing.read(file)
  title = f'{records.make_title(setting, shown)}; {parts}{", ".join(values)}'
  return composition_table.write(title, found, path, agreements)


def measure_agreements(
  plans: dict[str, list[Request]], file: pathlib.Path
) -> None:
  """Writes agreements where all compositions have a folder of their run.

  Args:
    plans: the runs of each row.
    file: gets them, one target and seed after the other.
  """
  folders: dict[agreeing.Task, dict[str, pathlib.Path]] = {}
  for name, requests in plans.items():
    for request in requests:
      task = request.target, request.seed
      folders.setdefault(task, {})[name] = request.folder
  found, opened = agreeing.read(file), dict[str, Domains]()
  for task, own in folders.items():
    where = f'{task[0]}, seed {task[1]}'
    try:
      found[task] = agreeing.measure(own, opened)
    except UserError as error:
      print(f'{where}: no agreement: {error}', flush=True)
      continue
    agreeing.write(found, file)
    print(f'{where}: agreement of {len(own)} runs', flush=True)


def main() -> None:
  """Trains what is missing and draws."""
  given: Any = flags.FLAGS
  setting = command.current_setting()
  plans = make_plans(find_variants(setting.experiment, given.compositions))
  usual = pathlib.Path(given.results) / f'{setting.name}.jsonl'
  known = [] if given.lines else records.read_lines(usual)
  if given.judged:
    known = [line for line in known if 'criteria' in line]
  # Seed by seed, so that an interrupted study has whole columns.
  requests = [request for own in plans.values() for request in own]
  requests.sort(key=lambda request: request.seed)
  command.run_study(
    'compositions', requests, functools.partial(draw, plans, given.set), known
  )


if __name__ == '__main__':
  command.define_flags('reviews')
  flags.DEFINE_list(
    'compositions',
    [],
    'the rows, METHOD or METHOD:key=value[:key=value…]; by default the named '
    "methods and MODA-FM's with one part replaced",
  )
  flags.DEFINE_bool(
    'agreement',
    False,
    'look into the folders of runs for how far they agree (EnsV), by which '
    'moda_jax.select chooses; what is found is kept beside the lines',
  )
  flags.DEFINE_bool(
    'judged', False, 'train again what was recorded without criteria'
  )
  cli.run(main)
