"""Measures everything and writes a table, a plot and JSON.

  make benchmark                          # PyTorch's environment included
  python -m experiments.benchmark --quick

All parts use random data but the start-up, which makes mini digits. PyTorch is
in an environment of its own, see the Makefile; its twins and ours take turns.
"""

import json
import os
import pathlib
import tempfile
import time
from typing import Any

from absl import flags

from moda_jax import cli
from moda_jax.errors import UserError

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_QUICK = flags.DEFINE_bool('quick', False, 'Fewer rounds, smaller sizes.')
_OUTPUT = flags.DEFINE_string(
  'output',
  str(_ROOT / 'experiments' / 'results' / 'benchmark'),
  'Where .md, .png and .json go, without these endings.',
)
_TORCH = flags.DEFINE_string(
  'torch_python',
  str(_ROOT / '.venv-torch' / 'bin' / 'python'),
  'The interpreter that has PyTorch; empty to do without.',
)
_PARTS = flags.DEFINE_list(
  'parts', [], 'Which to measure; what else the output has is kept.'
)
_CORES = flags.DEFINE_integer(
  'cores', None, 'How many cores to use; all by default.', lower_bound=1
)


def main() -> None:
  """Measures part by part and writes after each."""
  if _CORES.value:  # before JAX starts as many threads as it sees cores
    available = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, available[: _CORES.value])
  import jax

  from experiments.benchmark import machine, twin_client
  from experiments.benchmark.options import Options
  from experiments.benchmark.parts import PARTS

  # Compiling is measured too.
  jax.config.update('jax_enable_compilation_cache', False)
  if _TORCH.value:
    twin_client.check_python(_TORCH.value)
  chosen = _choose(PARTS)
  stem = pathlib.Path(_OUTPUT.value)
  results = _read(stem) if _PARTS.value else {}
  results.setdefault('parts', {})
  for name in chosen:
    print(f'measuring {name} …', flush=True)
    start, here = time.perf_counter(), machine.describe_machine()
    with tempfile.TemporaryDirectory() as folder:
      options = Options(_QUICK.value, _TORCH.value, pathlib.Path(folder))
      found = PARTS[name].measure(options)
    results['parts'][name] = {
      'machine': here,
      'quick': _QUICK.value,
      'seconds': time.perf_counter() - start,
      'found': found,
    }
    print('\n'.join(PARTS[name].describe(found)), flush=True)
    _write(stem, results)
  print(f'results: {stem}.md, {stem}.png, {stem}.json')


def _choose(parts: dict[str, Any]) -> list[str]:
  unknown = sorted(set(_PARTS.value) - set(parts))
  if unknown:
    raise UserError(
      f'--parts names {", ".join(unknown)}; known are {", ".join(parts)}.'
    )
  in_mode = [
    n for n, part in parts.items() if part.in_quick or not _QUICK.value
  ]
  return _PARTS.value or in_mode


def _read(stem: pathlib.Path) -> dict[str, Any]:
  path = stem.with_suffix('.json')
  return json.loads(path.read_text()) if path.exists() else {}


def _write(stem: pathlib.Path, results: dict[str, Any]) -> None:
  from experiments.benchmark import plot, report

  stem.parent.mkdir(parents=True, exist_ok=True)
  text = json.dumps(results, indent=2) + '\n'
  stem.with_suffix('.json').write_text(text)
  stem.with_suffix('.md').write_text(report.format_report(results))
  found = {name: part['found'] for name, part in results['parts'].items()}
  plot.write_plot(stem.with_suffix('.png'), found)


if __name__ == '__main__':
  cli.run(main)
