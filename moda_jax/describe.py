"""Shows the data of a config, as text and as pictures.

  python -m moda_jax.describe --config=digits:mnistm
  python -m moda_jax.describe --config=office31:webcam --output=runs/office31

Counts, label distributions, the distances between them, and sample images with
their weak and strong views. All the examples of a domain are described, also
where the config trains on a draw of them.
"""

import pathlib

from absl import flags
from ml_collections import config_flags

from moda_jax import cli
from moda_jax.errors import UserError

_CONFIG = config_flags.DEFINE_config_file(
  'config', None, 'the config, with its argument after a colon'
)
_OUTPUT = flags.DEFINE_string(
  'output', 'runs/describe', 'folder for description.txt and the pictures'
)


def main() -> None:
  """Prints the description and writes it with its pictures."""
  if _CONFIG.value is None:
    raise UserError('--config must be given; see --help.')
  # The heavy imports wait until the flags are known to be good.
  from moda_jax.report import description

  folder = pathlib.Path(_OUTPUT.value)
  text, files = description.describe(_CONFIG.value, folder)
  print(text)
  print('written: ' + ', '.join(str(file) for file in files))


if __name__ == '__main__':
  cli.run(main, 'moda_jax.training.config_flags:parse_flags')
