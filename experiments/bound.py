r"""Theorem 1 of the paper on a finished run: what bounds the target risk.

  python -m moda_jax.main --workdir=runs/mini \
    --config=mini:mnistm,keep_checkpoints=100
  python -m experiments.bound --run=runs/mini

At every checkpoint that the run has kept: the weighted source risk, half the
divergence between sources and target, B_α and V. The divergence is that of one
discriminator, trained on fixed features of half the samples and asked about
the other half: it is less than the supremum over all of them. λ_α cannot be
known without labels of the target. d is unknown too; by default it is taken to
be the number of parameters, which makes B_α and V far larger than 1, as for any
network of this size: their course says more than their size.
"""

import pathlib

from absl import flags

from experiments.figures import style
from moda_jax import cli
from moda_jax.report import palette


def draw(
  points: list, title: str, samples: int, dimension: float, path: pathlib.Path
) -> list[pathlib.Path]:
  """Draws risks and divergence beside B_α and V; writes the numbers.

  Args:
    points: as `Bound.measure` returns them.
    title: of the figure.
    samples: n.
    dimension: d.
    path: of the files, without an ending.
  """
  figure, (left, right) = style.make_panels(2, title, (3.4, 2.7))
  epochs = [point.epoch for point in points]
  risks = [point.risk for point in points]
  halves = [point.half_divergence for point in points]
  both = [a + b for a, b in zip(risks, halves, strict=True)]
  left.plot(epochs, risks, 'o-', color=palette.BLUE, label='source risk')
  left.plot(epochs, halves, 's-', color=palette.ORANGE, label='½ divergence')
  left.plot(epochs, both, '^-', color=palette.VERMILION, label='their sum')
  known = [p.target_risk for p in points if p.target_risk is not None]
  if len(known) == len(points):
    label = 'target risk (needs labels)'
    left.plot(epochs, known, '--', color=palette.BLACK, label=label)
  left.plot([], [], ' ', label=r'$\lambda_\alpha$: unknowable')
  sampling = [point.sampling for point in points]
  deviation = [point.deviation for point in points]
  right.plot(epochs, sampling, 'o-', color=palette.GREEN, label=r'$B_\alpha$')
  right.plot(epochs, deviation, 's-', color=palette.PURPLE, label=r'$V$')
  right.set_title(f'n = {samples:,}, d = {dimension:,.0f}')
  left.set_ylim(bottom=0)
  left.set_ylabel('risk')
  right.set_ylabel('sampling terms')
  for axes in (left, right):
    axes.set_xlabel('epoch')
    axes.legend()
  return [*style.save(figure, path), style.write_csv(path, *_numbers(points))]


def _numbers(points: list) -> tuple[list[str], list[list[object]]]:
  """Returns header and rows of the numbers; λ is marked as unknowable."""
  header = ['step', 'epoch', 'source risk', 'half divergence', 'lambda']
  header += ['B_alpha', 'V', 'target risk (needs labels)']
  header += [f'alpha {source}' for source in points[0].alpha]
  rows = []
  for point in points:
    row = [point.step, point.epoch, point.risk, point.half_divergence]
    row += ['unknowable', point.sampling, point.deviation]
    row += ['' if point.target_risk is None else point.target_risk]
    rows.append([*row, *point.alpha.values()])
  return header, rows


def main() -> None:
  """Measures and draws."""
  from experiments.theory.measure import Bound
  from moda_jax.errors import UserError

  bound = Bound(
    _RUN.value,
    _SAMPLES.value,
    _DIMENSION.value,
    _DELTA.value,
    _STEPS.value,
  )
  points = bound.measure()
  if not points:
    raise UserError(f'{_RUN.value} does not hold a checkpoint yet.')
  config = bound.config
  target = style.domain_name(config.data.target)
  method = style.method_look(config.objective.method).name
  title = f'{config.experiment}: {method} to {target}, width '
  title += f'{config.network.get("width", 1.0)}, {points[-1].epoch:.3g} epochs'
  path = pathlib.Path(_OUTPUT.value or f'{_RUN.value}/bound')
  files = draw(points, title, bound.samples, bound.dimension, path)
  print('\n'.join(str(file) for file in files))


if __name__ == '__main__':
  _RUN = flags.DEFINE_string('run', None, "the run's folder", required=True)
  _OUTPUT = flags.DEFINE_string(
    'output', '', 'name of the files; by default RUN/bound'
  )
  _SAMPLES = flags.DEFINE_integer(
    'samples',
    0,
    'n at most, two for each source or more; 0: all of the target',
    lower_bound=0,
  )
  _DIMENSION = flags.DEFINE_float(
    'vc_dimension', 0, 'd; 0: the number of parameters', lower_bound=0
  )
  _DELTA = flags.DEFINE_float('delta', 0.05, 'δ, above 0 and below 1')
  _STEPS = flags.DEFINE_integer(
    'discriminator_steps', 500, 'steps to train it', lower_bound=1
  )
  cli.run(main)
