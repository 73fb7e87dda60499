"""The parts of the benchmark by name, each with its description."""

import functools
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from experiments.benchmark import (
  against_torch,
  growth,
  memory,
  pipeline,
  processes,
  run_costs,
  seeds,
  settings,
  startup,
  streaming,
  views,
)
from experiments.benchmark.options import Options
from experiments.benchmark.twin_client import ROOT

_ONE_CORE = 'digits_quarter_one_core'


class Part(NamedTuple):
  """One thing that is measured.

  Attributes:
    measure: returns what was found, for JSON.
    describe: returns lines of Markdown for it.
    in_quick: whether quick mode has it.
  """

  measure: Callable[[Options], dict[str, Any]]
  describe: Callable[[dict[str, Any]], list[str]]
  in_quick: bool = True


def _measure_on_one_core(options: Options) -> dict[str, Any]:
  """Measures quarter width in a process that sees one core."""
  stem = options.folder / _ONE_CORE
  command = [sys.executable, '-m', 'experiments.benchmark', '--cores=1']
  command += ['--parts=digits_quarter', f'--output={stem}']
  command += [f'--torch_python={options.torch_python}']
  command += ['--quick'] if options.quick else []
  subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
  found = json.loads(stem.with_suffix('.json').read_text())
  result = found['parts']['digits_quarter']['found']
  return result | {'title': f'{result["title"]}, one core'}


def _make_case(name: str) -> Part:
  measure = functools.partial(against_torch.measure, name)
  return Part(measure, against_torch.describe, name != 'office31_256')


def _make_streaming(layout: str) -> Part:
  measure = functools.partial(streaming.measure, layout)
  return Part(measure, streaming.describe)


PARTS = {
  **{name: _make_case(name) for name in settings.CASES},
  _ONE_CORE: Part(_measure_on_one_core, against_torch.describe),
  'growth': Part(growth.measure, growth.describe),
  'pipeline': Part(pipeline.measure, pipeline.describe),
  'views': Part(views.measure, views.describe),
  'streaming': _make_streaming(streaming.FOLDER),
  'domainnet': _make_streaming(streaming.DOMAINNET),
  'seeds': Part(seeds.measure, seeds.describe),
  'processes': Part(processes.measure, processes.describe),
  'run_costs': Part(run_costs.measure, run_costs.describe),
  'startup': Part(startup.measure, startup.describe),
  'memory': Part(memory.measure, memory.describe),
}
