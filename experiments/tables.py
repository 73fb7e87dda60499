r"""The paper's tables: methods, targets and seeds of an experiment.

  python -m experiments.tables --experiment=reviews --seeds=5
  python -m experiments.tables --experiment=digits --scale=small \
    --targets=mnistm --methods=fm,moda_fm --epochs=10 --set=mu_c=0.5
  python -m experiments.tables --experiment=digits --scale=small \
    --import=runs/by_hand/fm --import='runs/by_hand/moda*'

Trains what RESULTS/<experiment>_<scale>.jsonl lacks, several runs at a time,
one on each CPU core or device, and appends a line for each: its target, method,
seed, config, commit, accuracy at the last step as a fraction, times and curve.
Renders all lines as .md, .tex, .csv, .png and .pdf, with the paper's figures
beside. The same command goes on where it was interrupted. Runs at values or of
a length other than the scale's get rows of their own, which name these values
and have no figure beside.
"""

import glob
import pathlib
from collections.abc import Sequence

from absl import flags

from experiments.runs.scales import EXPERIMENTS, SCALES, Setting, find_setting
from moda_jax import cli
from moda_jax.errors import UserError


def import_runs(
  setting: Setting,
  patterns: Sequence[str],
  path: pathlib.Path,
  commit: str | None = None,
) -> int:
  """Appends lines for finished runs in other folders; returns how many.

  Args:
    setting: what they must be runs of.
    patterns: folders, or patterns of them such as `runs/*`.
    path: the file of results.
    commit: of the code that trained them, where that is known.
  """
  from experiments.runs import descriptions, records

  known = records.read_lines(path)
  new: list[records.Line] = []
  for folder in _find_folders(patterns):
    for line in descriptions.describe_run(folder, setting, commit=commit):
      records.check_scale(line, setting, folder)
      if records.has_line(known + new, line):
        print(f'{folder}: seed {line["seed"]} is there already')
      else:
        new.append(line)
        print(f'{folder}: {100 * line["accuracy"]:.2f} %')
  records.append_lines(path, new)
  return len(new)


def _find_folders(patterns: Sequence[str]) -> list[pathlib.Path]:
  folders = []
  for pattern in patterns:
    found = [pathlib.Path(name) for name in sorted(glob.glob(pattern))]
    found = [folder for folder in found if (folder / 'config.json').is_file()]
    if not found:
      raise UserError(f'--import={pattern}: there is no folder of a run.')
    folders += found
  return folders


def render(setting: Setting, path: pathlib.Path) -> list[pathlib.Path]:
  """Writes the tables of a file of results; returns what was written."""
  from experiments.figures import style
  from experiments.figures.method_figure import draw_table
  from experiments.figures.method_table import make_table, write_table
  from experiments.runs import records

  lines = records.read_lines(path)
  if not lines:
    raise UserError(f'{path} has no runs to show yet.')
  table, name = make_table(setting, lines), path.with_suffix('')
  written = [*write_table(table, name), *style.save(draw_table(table), name)]
  print('\n'.join(str(file) for file in written))
  return written


def main() -> None:
  """Imports, trains and renders, as the flags say."""
  setting = find_setting(_EXPERIMENT.value, _SCALE.value)
  path = pathlib.Path(_RESULTS.value) / f'{setting.name}.jsonl'
  if _IMPORT.value:
    import_runs(setting, _IMPORT.value, path, _COMMIT.value)
  elif not _RENDER_ONLY.value:
    # Heavy: imported once the flags are known to be good.
    from experiments.figures.published import published_methods
    from experiments.runs.requests import make_requests
    from experiments.runs.runner import find_slots, train_missing

    epochs = [f'epochs={_EPOCHS.value}'] if _EPOCHS.value else []
    requests = make_requests(
      setting,
      _TARGETS.value or setting.targets,
      _METHODS.value or ['source_only', *published_methods(setting.experiment)],
      range(_SEEDS.value),
      pathlib.Path(_WORKDIR.value),
      [*epochs, *_SET.value],
      _SOURCES.value,
    )
    train_missing(requests, path, find_slots(_JOBS.value))
  render(setting, path)


if __name__ == '__main__':
  _EXPERIMENT = flags.DEFINE_enum(
    'experiment', None, EXPERIMENTS, 'which tables', required=True
  )
  _SCALE = flags.DEFINE_enum('scale', 'paper', SCALES, 'at which size')
  _METHODS = flags.DEFINE_list(
    'methods', [], "methods; the paper's and source_only by default"
  )
  _TARGETS = flags.DEFINE_list('targets', [], "targets; the paper's by default")
  _SOURCES = flags.DEFINE_list(
    'sources', [], 'domains to learn from; all but the target by default'
  )
  _SEEDS = flags.DEFINE_integer(
    'seeds', 1, 'runs per method and target, from seed 0', lower_bound=1
  )
  _EPOCHS = flags.DEFINE_integer(
    'epochs', 0, "another length than the config's", lower_bound=0
  )
  _SET = flags.DEFINE_list(
    'set',
    [],
    'further values of the config, key=value, each for the methods that read '
    'it; values={target}_{method}.json takes what a search has chosen',
  )
  _WORKDIR = flags.DEFINE_string('workdir', 'runs/tables', 'folder of the runs')
  _RESULTS = flags.DEFINE_string(
    'results', 'experiments/results', 'folder of lines and tables'
  )
  _JOBS = flags.DEFINE_integer(
    'jobs', 0, 'runs at a time; 0: one per device or CPU core', lower_bound=0
  )
  _IMPORT = flags.DEFINE_multi_string(
    'import', [], 'take in finished runs from these folders; train nothing'
  )
  _COMMIT = flags.DEFINE_string('commit', None, 'of the code of imported runs')
  _RENDER_ONLY = flags.DEFINE_bool('render_only', False, 'train nothing')
  cli.run(main)
