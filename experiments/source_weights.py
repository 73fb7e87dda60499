r"""The source weights α of MODA-FM per epoch, for each digits target.

  python -m experiments.source_weights --scale=small
  python -m experiments.source_weights --scale=small \
    --lines=experiments/results/digits_small.jsonl

Trains 60 epochs at the paper's μ_s: 0.1 for MNIST, 0.2 for MNIST-M and 0.9 for
SVHN. β, which α is the softmax of, does not move as the paper's: the config has
it move at a tenth of the rate, which the title says; --set=beta_rate=1 is the
paper's. With --lines it draws runs of MODA-FM that another command has
recorded, for each target the longest.
"""

from collections.abc import Iterable, Sequence

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


def check_targets(given: Iterable[str], targets: Sequence[str]) -> None:
  """Refuses μ_s for what is no target of the study."""
  for name in given:
    if name not in targets:
      raise UserError(
        f"--mu_s names '{name}'; the targets are {', '.join(targets)}."
      )


def main() -> None:
  """Trains what is missing and draws."""
  given = parse_pairs(_MU_S.value)
  targets = flags.FLAGS.targets or command.current_setting().targets
  if _MU_S.present:  # the default is that of digits, whatever the experiment
    check_targets(given, targets)
  requests = []
  for target in targets:
    values = [f'mu_s={given[target]}'] if target in given else []
    requests += command.request_runs(['moda_fm'], values, [target])
  command.run_study('source_weights', requests, draw_source_weights)


if __name__ == '__main__':
  command.define_flags('digits', epochs=60)
  _MU_S = flags.DEFINE_list(
    'mu_s', ['mnist:0.1', 'mnistm:0.2', 'svhn:0.9'], 'μ_s by target'
  )
  cli.run(main)
