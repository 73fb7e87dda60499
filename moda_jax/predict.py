r"""Labels pictures with a trained run, from its folder alone.

  python -m moda_jax.predict --workdir=RUN --images=FOLDER --out=labels.csv

looks for pictures in FOLDER and the folders within it, and writes one line for
each: its path, the most probable class and how probable that is, the second and
the third, and a remark: 'unsure' where the class is less probable than
--threshold, or why a file could not be read. Training data is not read.
"""

from absl import flags

from moda_jax import cli
from moda_jax.errors import UserError

_WORKDIR = flags.DEFINE_string('workdir', None, "the run's folder")
_IMAGES = flags.DEFINE_string('images', None, 'a folder of pictures, or one')
_OUT = flags.DEFINE_string('out', 'labels.csv', 'the table to write')
_THRESHOLD = flags.DEFINE_float(
  'threshold', 0.5, 'classes less probable than this are remarked on as unsure'
)


def main() -> None:
  """Labels what the flags name."""
  workdir, images = _WORKDIR.value, _IMAGES.value
  if workdir is None or images is None:
    missing = 'workdir' if workdir is None else 'images'
    raise UserError(f'--{missing} must be given; see --help.')
  # The heavy imports wait until the flags are known to be there.
  from moda_jax.api import load

  print(load(workdir).label(images, _OUT.value, _THRESHOLD.value))


if __name__ == '__main__':
  cli.run(main)
