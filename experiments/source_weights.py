r"""The source weights α of MODA-FM per epoch, for each digits target.

  python -m experiments.source_weights --scale=small
  python -m experiments.source_weights --scale=small \
    --lines=experiments/results/digits_small.jsonl

Trains 60 epochs at the paper's μ_s: 0.1 for MNIST, 0.2 for MNIST-M and 0.9 for
SVHN. With --lines it draws runs of MODA-FM that another command has recorded.
"""

from absl import flags

from experiments.figures.curves import draw_source_weights
from experiments.runs import command
from moda_jax import cli
from moda_jax.errors import UserError


def parse_pairs(pairs: list[str]) -> dict[str, str]:
  """Returns μ_s by target from `target:value` pairs."""
  found = dict(pair.partition(':')[::2] for pair in pairs)
  if not all(found.values()):
    raise UserError(f'--mu_s={",".join(pairs)} must be target:value pairs.')
  return found


def main() -> None:
  """Trains what is missing and draws."""
  given = parse_pairs(_MU_S.value)
  setting = command.current_setting()
  requests = []
  for target in flags.FLAGS.targets or setting.targets:
    values = [f'mu_s={given[target]}'] if target in given else []
    requests += command.request_runs(['moda_fm'], values, [target])
  command.run_study('source_weights', requests, draw_source_weights)


if __name__ == '__main__':
  command.define_flags('digits', epochs=60)
  _MU_S = flags.DEFINE_list(
    'mu_s', ['mnist:0.1', 'mnistm:0.2', 'svhn:0.9'], 'μ_s by target'
  )
  cli.run(main)
