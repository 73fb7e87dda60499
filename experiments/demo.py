"""Source-only against MODA-FM on mini digits, in minutes on a CPU.

  python -m experiments.demo --workdir=runs/demo
  python -m experiments.demo --workdir=runs/short --steps=500

Trains both on `configs/mini.py:mnistm`, prints a table and writes
`results.json`, a page of plots, and `demo.png`, which the README shows as
`experiments/results/demo.png`. Interrupted, the same command goes on.
"""

import json
import pathlib
from typing import Any

from absl import flags

from moda_jax import cli

_NAMES = {'source_only': 'source-only', 'moda_fm': 'MODA-FM'}


def main() -> None:
  """Trains, compares, reports."""
  # Imported here for a quick answer to a wrong flag.
  from moda_jax import get_config, report
  from moda_jax.training import loop as train

  folder = pathlib.Path(_WORKDIR.value)
  runs = {}
  for method, name in _NAMES.items():
    print(f'\n{name} on mini digits, target mnistm')
    config = get_config(f'mini:mnistm,method={method}')
    if _STEPS.value is not None:
      config.run.steps = _STEPS.value
    runs[name] = (train.train(config, folder / method), folder / method)
  page = report.write_page(folder / 'report', runs)
  picture, _ = draw(folder)
  results: dict[str, dict[str, Any]] = {
    method: {'target_accuracy': runs[name][0].accuracy}
    for method, name in _NAMES.items()
  }
  (folder / 'results.json').write_text(json.dumps(results, indent=2) + '\n')
  test = runs['MODA-FM'][0].experiment.domains.test
  print(
    f'\nmini digits: accuracy on the test split of mnistm, {test.size} images'
  )
  for method, name in _NAMES.items():
    print(f'  {name:12} {100 * results[method]["target_accuracy"]:6.2f} %')
  print(f'\nresults: {folder / "results.json"}\nplots:   {page}')
  print(f'picture: {picture}')


def draw(folder: pathlib.Path) -> list[pathlib.Path]:
  """Draws accuracy on the target over the steps of both runs.

  Args:
    folder: holds a run of each method, and gets the picture.
  """
  from experiments.figures import style
  from moda_jax.report.curves import series
  from moda_jax.training.evaluation import ACCURACY
  from moda_jax.training.metrics_file import read_metrics

  curves = {
    method: series(read_metrics(folder / method), ACCURACY) for method in _NAMES
  }
  length = max(int(steps[-1]) for steps, _ in curves.values())
  title = f'mini digits, target mnistm, {length:,} steps'
  figure, (axes,) = style.make_panels(1, title, (5.0, 2.6))
  for method, (steps, values) in curves.items():
    look = style.method_look(method)
    axes.plot(
      steps,
      100 * values,
      color=look.color,
      linestyle=look.line,
      marker=look.marker,
      label=look.name,
    )
  axes.set_xlabel('step')
  axes.set_ylabel('accuracy on the target (%)')
  axes.legend()
  return style.save(figure, folder / 'demo')


if __name__ == '__main__':
  _WORKDIR = flags.DEFINE_string('workdir', 'runs/demo', 'Runs and results.')
  _STEPS = flags.DEFINE_integer('steps', None, "Fewer steps than the config's.")
  cli.run(main)
