"""What is said of a TFDS data set that is damaged or not prepared."""

import contextlib
import re
from collections.abc import Iterator

import tensorflow_datasets as tfds

from moda_jax.datasets import preparation
from moda_jax.errors import UserError

_USUAL = tfds.core.FileFormat.TFRECORD


def preparing_command(
  experiment: str, candidate: str, file_format: tfds.core.FileFormat = _USUAL
) -> str:
  """Returns the command that prepares a data set of an experiment."""
  group = experiment.split()[0]  # 'office31 shrunk' is prepared as office31
  if group in preparation.GROUPS:
    return (
      f'python -m moda_jax.prepare {group} --manual_dir=FOLDER_WITH_THE_FILES'
    )
  call = f't.load("{candidate}")'
  if file_format is not _USUAL:  # which load does not choose
    options = f'"{candidate}", file_format="{file_format.value}"'
    call = f't.builder({options}).download_and_prepare()'
  return f"python -c 'import tensorflow_datasets as t; {call}'"


def damage_error(
  builder: tfds.core.DatasetBuilder,
  experiment: str,
  reason: str,
  what: str = 'is damaged',
) -> UserError:
  """Returns the error that names a data set and the way to make it anew."""
  name = builder.info.full_name
  command = preparing_command(
    experiment, name.rpartition('/')[0], builder.info.file_format
  )
  return UserError(
    f'{name} {what}: {reason}\n'
    f'Delete its folder, {builder.data_dir}, and make it again with\n'
    f'  {command}'
  )


@contextlib.contextmanager
def damage_is_user_error(
  builder: tfds.core.DatasetBuilder, experiment: str
) -> Iterator[None]:
  """Turns what TensorFlow raises on damaged files into that error."""
  import tensorflow as tf  # takes a while to import

  try:
    yield
  except (
    tf.errors.DataLossError,
    tf.errors.FailedPreconditionError,  # fewer examples than there should be
    tf.errors.InvalidArgumentError,  # no examples of this data set
    tf.errors.NotFoundError,
  ) as error:
    reason = re.sub(r'^{{.*?}} | \[Op:.*', '', error.message)
    raise damage_error(builder, experiment, reason) from error
