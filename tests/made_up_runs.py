"""Run folders as training leaves them, with made-up figures."""

import json

from moda_jax.training import options
from moda_jax.training.model import Inputs
from moda_jax.training.recorded import to_record

EXAMPLES = 48


def write_run(folder, config, accuracy=0.5, steps=None, **values):
  """Writes config and metrics of a run whose accuracy rises to the given one.

  Args:
    folder: of the run.
    config: what it was trained with.
    accuracy: the last one; None where labels are not known.
    steps: the last step; by default the run is finished.
    **values: further metrics, the same at every step.
  """
  config = options.prune(config)
  domains = (*config.data.sources, config.data.target)
  origins = dict.fromkeys(domains, f'made up, {EXAMPLES} examples')
  record = to_record(config, origins, Inputs((32, 32, 3), ('a', 'b')))
  epoch = -(-EXAMPLES // config.data.batch_size)
  last = steps or config.run.steps or config.run.epochs * epoch
  every = max(1, last // 3)
  folder.mkdir(parents=True, exist_ok=True)
  (folder / 'config.json').write_text(json.dumps(record))
  lines = []
  for step in dict.fromkeys([*range(every, last, every), last]):
    line = {'step': step, 'loss': 1.0, 'steps_per_second': 2.0, **values}
    if accuracy is not None:
      line['target/accuracy'] = accuracy * step / last
    lines.append(json.dumps(line) + '\n')
  (folder / 'metrics.jsonl').write_text(''.join(lines))
