"""Source-only against MODA-FM on mini digits, in minutes on a CPU.

  python -m experiments.demo --workdir=runs/demo

Trains both on `configs/mini.py:mnistm`, prints a table and writes
`results.json` and a page of plots. Interrupted, the same command goes on.
"""

import json
import pathlib

from absl import flags

from moda_jax import cli

_WORKDIR = flags.DEFINE_string('workdir', 'runs/demo', 'Runs and results.')
_STEPS = flags.DEFINE_integer('steps', None, "Fewer steps than the config's.")
_NAMES = {'source_only': 'source-only', 'moda_fm': 'MODA-FM'}


def main() -> None:
  """Trains, compares, reports."""
  # Imported here for a quick answer to a wrong flag.
  from configs import mini
  from moda_jax import report
  from moda_jax.training import loop as train

  folder = pathlib.Path(_WORKDIR.value)
  runs = {}
  for method, name in _NAMES.items():
    print(f'\n{name} on mini digits, target mnistm')
    config = mini.get_config(f'mnistm,method={method}')
    if _STEPS.value is not None:
      config.steps = _STEPS.value
    runs[name] = (train.train(config, folder / method), folder / method)
  page = report.write_page(folder / 'report', runs)
  results = {
    method: {'target_accuracy': runs[name][0].accuracy}
    for method, name in _NAMES.items()
  }
  (folder / 'results.json').write_text(json.dumps(results, indent=2) + '\n')
  test = runs['MODA-FM'][0].experiment.domains.test
  print(
    '\nmini digits: accuracy on the test split of mnistm, '
    f'{len(test.labels)} images'
  )
  for method, name in _NAMES.items():
    print(f'  {name:12} {100 * results[method]["target_accuracy"]:6.2f} %')
  print(f'\nresults: {folder / "results.json"}\nplots:   {page}')


if __name__ == '__main__':
  cli.run(main)
