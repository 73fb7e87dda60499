"""Tiny files in the layouts in which people have the originals."""

import gzip
import io
import os
import pathlib
import struct
import tarfile
import zipfile

import numpy as np
import pytest
import scipy.io
import tensorflow_datasets as tfds
from PIL import Image

import moda_jax.datasets  # noqa: F401  registers the builders

ROOT = pathlib.Path(__file__).parents[1]
REAL = pathlib.Path(
  os.environ.get('MODA_DATA_DIR', ROOT.parent / 'shared' / 'data')
)
PACKINGS = ('folder', 'tar', 'tar.gz', 'zip')


def real(*parts):
  """Returns a file of the real data; skips the test where it is missing."""
  path = REAL.joinpath(*parts)
  if not path.exists():
    pytest.skip('needs real data: set MODA_DATA_DIR')
  return path


def pack(files, packing, place, name):
  """Writes {path: bytes} as a folder or archive and returns its path."""
  place.mkdir(parents=True, exist_ok=True)
  if packing == 'folder':
    for path, content in files.items():
      target = place / name / path
      target.parent.mkdir(parents=True, exist_ok=True)
      target.write_bytes(content)
    return place / name
  target = place / f'{name}.{packing}'
  if packing == 'zip':
    with zipfile.ZipFile(target, 'w', zipfile.ZIP_DEFLATED) as archive:
      for path, content in files.items():
        archive.writestr(path, content)
    return target
  with tarfile.open(target, 'w:gz' if packing == 'tar.gz' else 'w') as archive:
    for path, content in files.items():
      info = tarfile.TarInfo(path)
      info.size = len(content)
      archive.addfile(info, io.BytesIO(content))
  return target


def random_image(seed, shape=(32, 32, 3)):
  return np.random.RandomState(seed).randint(0, 256, shape).astype(np.uint8)


def encode(array, kind='PNG', **options):
  content = io.BytesIO()
  Image.fromarray(array).save(content, kind, **options)
  return content.getvalue()


def idx(array):
  shape = array.shape
  header = struct.pack(f'>HBB{len(shape)}I', 0, 8, len(shape), *shape)
  return header + array.astype(np.uint8).tobytes()


def write_mnist(place, train=30, test=20, compress=True):
  """Writes the four idx files; returns {split: (images, labels)}."""
  place.mkdir(parents=True, exist_ok=True)
  arrays = {}
  for split, prefix, count in (
    ('train', 'train', train),
    ('test', 't10k', test),
  ):
    images = random_image(count, (count, 28, 28))
    images[images < 128] = 0
    labels = (np.arange(count) * 3 + 1) % 10
    arrays[split] = images, labels
    for part, content in (('images-idx3', images), ('labels-idx1', labels)):
      data = gzip.compress(idx(content)) if compress else idx(content)
      name = f'{prefix}-{part}-ubyte' + '.gz' * compress
      (place / name).write_bytes(data)
  return arrays


def write_mat_digits(path, count, labels, compress=True):
  """Writes SVHN's layout; returns images [N, 32, 32, 3]."""
  path.parent.mkdir(parents=True, exist_ok=True)
  images = random_image(count, (count, 32, 32, 3))
  scipy.io.savemat(
    path,
    {'X': np.moveaxis(images, 0, -1), 'y': np.reshape(labels, (-1, 1))},
    do_compression=compress,
  )
  return images


def mnist_m_files(train=12, test=6):
  """Returns {path: bytes} of MNIST-M and {split: {name: (image, label)}}."""
  files, truth = {}, {}
  for split, count in (('train', train), ('test', test)):
    truth[split] = {
      f'{7 * i:08d}.png': (random_image(count + i), i % 10)
      for i in range(count)
    }
    # As in the original, the lines are not in the order of the names.
    lines = [f'{name} {label}\n' for name, (_, label) in truth[split].items()]
    lines.sort(key=lambda line: line.split()[1])
    files[f'mnist_m/mnist_m_{split}_labels.txt'] = ''.join(lines).encode()
    for name, (image, _) in truth[split].items():
      files[f'mnist_m/mnist_m_{split}/{name}'] = encode(image)
  return files, truth


def office31_files(prefix='office31/', middle='images/'):
  """Returns {path: bytes} of Office-31: three classes and odd pictures."""
  files = {}
  for domain in ('amazon', 'dslr', 'webcam'):
    for label in ('bike', 'pen', 'trash_can'):
      for number in (1, 2):
        image = random_image(number, (256, 256, 3))
        path = f'{prefix}{domain}/{middle}{label}/frame_{number:04d}.jpg'
        files[path] = encode(image, 'JPEG')
  return files


def write_reviews(path, sizes=(4, 3, 5, 2), features=50, **changes):
  """Writes amazon.npz; returns the dense counts [reviews, features], labels."""
  path.parent.mkdir(parents=True, exist_ok=True)
  rng = np.random.RandomState(0)
  dense = rng.poisson(0.3, (sum(sizes), features))
  review, feature = np.nonzero(dense)
  order = rng.permutation(len(review))
  labels = rng.choice([-1, 1], sum(sizes))
  arrays = {
    'xx_data': dense[review, feature][order].astype(np.int32),
    'xx_row': feature[order].astype(np.int32),
    'xx_col': review[order].astype(np.int32),
    'xx_shape': np.array([features, sum(sizes)]),
    'yy': labels[:, np.newaxis],
    'offset': np.cumsum([0, *sizes])[:, np.newaxis],
  }
  np.savez_compressed(path, **arrays | changes)
  return dense, labels


def write_all_but_synth_digits(place):
  """Writes all originals except the one that is no longer available."""
  write_mnist(place / 'mnist')
  files, _ = mnist_m_files()
  pack(files, 'tar.gz', place / 'mnist_m', 'mnist_m')
  for split, count in (('train', 20), ('test', 10)):
    write_mat_digits(
      place / 'svhn' / f'{split}_32x32.mat', count, np.arange(count) % 10 + 1
    )
  pack(office31_files(), 'zip', place / 'office31', 'office31')
  write_reviews(place / 'reviews' / 'amazon.npz')
  return place


def build(name, manual_dir, data_dir):
  """Prepares a data set as a user of TFDS would."""
  builder = tfds.builder(name, data_dir=data_dir)
  config = tfds.download.DownloadConfig(manual_dir=manual_dir)
  builder.download_and_prepare(download_config=config)
  return builder


def examples(builder, split):
  return list(tfds.as_numpy(builder.as_dataset(split=split)))


def leftovers(data_dir):
  """Returns what could be taken for a data set, or for a part of one."""
  return [
    str(path)
    for path in pathlib.Path(data_dir).rglob('*')
    if path.is_file() and 'tfrecord' in path.name + path.parent.name
  ]
