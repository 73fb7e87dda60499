"""Writes a trained run as a model that needs nothing of moda_jax.

  python -m moda_jax.export --workdir=RUN --to=FOLDER

writes from the run's folder alone: model.stablehlo (for JAX on CPU, CUDA and
TPU), savedmodel/ (for TensorFlow), model.onnx (for onnxruntime; written where
jax2onnx is installed, pip install 'moda_jax[onnx]'), classes.json (the class
names), and MODEL_CARD.md, which says what the model takes and gives and how to
load it. It takes byte images of a fixed size, any number at a time, or rows of
features; conversion, normalisation and a fixed network are inside.
"""

import argparse
from collections.abc import Sequence

from moda_jax import cli
from moda_jax.errors import UserError


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
  parser = argparse.ArgumentParser(
    'python -m moda_jax.export',
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  parser.add_argument('--workdir', metavar='RUN', help="the run's folder")
  parser.add_argument('--to', metavar='FOLDER', help='to write, new or empty')
  parser.add_argument(
    '--formats',
    type=lambda text: text.split(','),
    default=[],
    help='of stablehlo, savedmodel and onnx those to write, with commas; by '
    'default all that work here',
  )
  return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
  """Exports what the arguments name, or raises `UserError`."""
  options = _parse(arguments)
  if options.workdir is None or options.to is None:
    missing = 'workdir' if options.workdir is None else 'to'
    raise UserError(f'--{missing} must be given; see --help.')
  cli.log_to_stdout()
  # The heavy imports wait until the arguments are known to be there.
  from moda_jax.export.folder import check_place, write_folder
  from moda_jax.export.formats import choose
  from moda_jax.training.trained import load_trained

  # Before the run is read, which may take a while.
  check_place(options.to)
  choose(options.formats)
  trained = load_trained(options.workdir)
  has_backbone = trained.model.inputs.picture_size > 0
  backbone = trained.read_backbone() if has_backbone else None
  written = write_folder(trained, options.to, options.formats, backbone)
  names = sorted(path.name for path in written.iterdir())
  print(f'{written}: {", ".join(names)}')


if __name__ == '__main__':
  cli.end_by_message(main)
