"""A domain's examples from a TFDS data set."""

import logging
import os
import pathlib

import ml_collections
import numpy as np
import scipy.sparse
import tensorflow_datasets as tfds

from moda_jax.data.damage import damage_is_user_error, preparing_command
from moda_jax.data.domains import Domain
from moda_jax.data.images import MNIST_SIZE, pad_mnist, resize, to_rgb
from moda_jax.data.recorded_pictures import (
  RecordedPictures,
  Records,
  has_random_access,
)
from moda_jax.datasets import preparation
from moda_jax.errors import UserError

_log = logging.getLogger(__name__)
_ROWS = 512


def read_tfds(
  config: ml_collections.ConfigDict, name: str, split: str
) -> Domain:
  """Reads a split of the first of the domain's data sets that is prepared.

  Images come as they are. Those of a data set whose images differ in size are
  brought to `data.image_size`, or not read yet if it was prepared as
  ArrayRecord. Sparse features come as a sparse matrix.
  """
  builder = prepared_builder(config, name)
  with damage_is_user_error(builder, config.experiment):
    return _read_split(builder, config, name, split)


def _read_split(
  builder: tfds.core.DatasetBuilder,
  config: ml_collections.ConfigDict,
  name: str,
  split: str,
) -> Domain:
  if split not in builder.info.splits:
    raise UserError(
      f'{builder.info.full_name} has no split {split!r}; it has '
      f'{", ".join(builder.info.splits)}. See config.data.evaluate_on.'
    )
  features = builder.info.features
  if 'label' not in features or not {'image', 'indices'} & set(features):
    raise UserError(
      f'config.data.datasets.{name}: {builder.info.full_name} has the features '
      f"{', '.join(features)}, where 'image' and 'label' are needed."
    )
  if 'indices' in features:
    inputs, labels = _read_sparse(builder, split)
  elif None in features['image'].shape[:2] and has_random_access(builder):
    inputs = RecordedPictures(builder, split, config.experiment)
    labels = inputs.read_labels()
  elif None in features['image'].shape[:2]:
    inputs, labels = _read_one_by_one(builder, split, config.data.image_size)
  else:
    images, labels = _read_at_once(builder, split, config.experiment)
    inputs = to_rgb(pad_mnist(images))
  return Domain(
    name=name,
    origin=builder.info.full_name,
    padded=_is_mnist(features),
    inputs=inputs,
    labels=labels.astype(np.int32),
    classes=tuple(features['label'].names),
  )


def _is_mnist(features: tfds.features.FeaturesDict) -> bool:
  return 'image' in features and features['image'].shape[:2] == MNIST_SIZE


def _read_sparse(
  builder: tfds.core.DatasetBuilder, split: str
) -> tuple[scipy.sparse.csr_array, np.ndarray]:
  # Many rows at once: one by one they take five times as long.
  batches = list(builder.as_dataset(split=split).ragged_batch(_ROWS))
  sizes = np.concatenate([b['indices'].row_lengths() for b in batches])
  matrix = scipy.sparse.csr_array(
    (
      np.concatenate([b['counts'].flat_values for b in batches]).astype(
        np.float32
      ),
      np.concatenate([b['indices'].flat_values for b in batches]),
      np.cumsum([0, *sizes]),
    ),
    shape=(len(sizes), builder.info.metadata['features']),
  )
  return matrix, np.concatenate([b['label'] for b in batches])


def _read_at_once(
  builder: tfds.core.DatasetBuilder, split: str, experiment: str
) -> tuple[np.ndarray, np.ndarray]:
  if has_random_access(builder):  # which as_dataset does not read
    records = Records(builder, split, experiment)
    examples = [records.read(i) for i in range(len(records))]
    columns = [[e[key] for e in examples] for key in ('image', 'label')]
    return np.stack(columns[0]), np.asarray(columns[1])
  loaded = builder.as_dataset(split=split, batch_size=-1)
  return loaded['image'].numpy(), loaded['label'].numpy()


def _read_one_by_one(
  builder: tfds.core.DatasetBuilder, split: str, size: int
) -> tuple[np.ndarray, np.ndarray]:
  if size <= 0:
    raise UserError(
      f'The images of {builder.info.full_name} differ in size: set '
      'config.data.image_size to bring them to one size.'
    )
  examples = tfds.as_numpy(builder.as_dataset(split=split))
  images, labels = [], []
  for example in examples:
    images.append(resize(to_rgb(example['image'][None])[0], size))
    labels.append(example['label'])
  return np.stack(images), np.asarray(labels)


def prepared_builder(
  config: ml_collections.ConfigDict, name: str
) -> tfds.core.DatasetBuilder:
  """Returns the first of the domain's data sets that is prepared."""
  _check_data_dir(config.data.data_dir)
  candidates = config.data.datasets[name].replace(' ', '').split(',')
  for candidate in candidates:
    builder = _create_builder(candidate, config.data.data_dir, name)
    if preparation.is_prepared(builder):
      return builder
    if getattr(builder, 'MADE_LOCALLY', False):
      _log.info('making %s, once (%s)', candidate, builder.data_dir)
      _make_once(builder)
      return builder
  # DomainNet's pictures differ in size: only these files leave them on disk.
  by_index = config.experiment.split()[0] == 'domainnet'
  formats = tfds.core.FileFormat
  command = preparing_command(
    config.experiment,
    candidates[0],
    formats.ARRAY_RECORD if by_index else formats.TFRECORD,
  )
  raise UserError(
    f"The domain '{name}' is not prepared: none of {', '.join(candidates)} is "
    f'in {builder._data_dir_root}. Prepare it with\n'
    f'  {command}\n'
    'or name another place with --config.data.data_dir or TFDS_DATA_DIR, or '
    f'another data set with --config.data.datasets.{name}=TFDS_NAME, such as '
    'a stand-in that prepare has made, see its table.'
  )


def _check_data_dir(chosen: str) -> None:
  """Refuses a place that was named and is not there: it may be mistyped."""
  named = chosen or os.environ.get('TFDS_DATA_DIR', '')
  if not named or '://' in named or pathlib.Path(named).expanduser().is_dir():
    return
  where = '--config.data.data_dir' if chosen else 'TFDS_DATA_DIR'
  raise UserError(
    f'{where}={named} is not a folder, and data sets are read from there. '
    'Make it first if it is what you mean.'
  )


def _make_once(builder: tfds.core.DatasetBuilder) -> None:
  """Makes a data set unless another process has done so meanwhile."""
  folder = pathlib.Path(builder._data_dir_root)
  try:
    with preparation.lock(folder, wait=True):
      if not preparation.is_prepared(builder):
        preparation.make(builder)
  except OSError as error:
    raise UserError(
      f'{builder.info.full_name} cannot be made in {folder}: {error}. Choose '
      'another place with --config.data.data_dir or TFDS_DATA_DIR.'
    ) from error


def _create_builder(
  candidate: str, data_dir: str, name: str
) -> tfds.core.DatasetBuilder:
  try:
    return preparation.open_builder(candidate, data_dir or None)
  except (
    tfds.core.DatasetNotFoundError,
    ValueError,
    AssertionError,
  ) as error:
    reason = (str(error).splitlines() or ['not found'])[0]
    raise UserError(
      f"config.data.datasets.{name}: '{candidate}' is not a TFDS data set: "
      f'{reason}'
    ) from error
