r"""Does accuracy decay when training goes on? MDAN, MODA and MODA-FM.

  python -m experiments.overtraining --scale=features --seeds=5
  python -m experiments.overtraining --lines=experiments/results/\
office31_features.jsonl --scale=features

Trains 60 epochs on Office-31 and draws accuracy per epoch with trend lines,
which leave out the first two evaluations, as the paper's do; the legend has
their slopes. With --lines it draws runs of --methods that another command has
recorded; those of fewer than four evaluations have no trend.
"""

from absl import flags

from experiments.figures.curves import draw_accuracy
from experiments.runs import command
from moda_jax import cli


def main() -> None:
  """Trains what is missing and draws."""
  requests = command.request_runs(_METHODS.value)
  command.run_study('overtraining', requests, draw_accuracy)


if __name__ == '__main__':
  command.define_flags('office31', epochs=60)
  _METHODS = flags.DEFINE_list(
    'methods', ['mdan', 'moda', 'moda_fm'], 'the methods compared'
  )
  cli.run(main)
