"""What complete originals look like: SHA-256 where known, else counts."""

import functools
import hashlib
import os
import pathlib
from collections.abc import Collection

from moda_jax.files import archives

# Of the unpacked idx files: copies are compressed in different ways. Their MD5s
# are the published 6bbc9ace…, a25bea73…, 2646ac64… and 27ae3e4e….
MNIST_SHA256 = {
  'train-images': (
    'ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db'
  ),
  'train-labels': (
    '65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5'
  ),
  't10k-images': (
    '0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7'
  ),
  't10k-labels': (
    'ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2'
  ),
}

# As TFDS has them for `svhn_cropped`.
SVHN_SHA256 = {
  'train': '435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8',
  'test': 'cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b',
}

# The file that the builder was written with; it has all the reviews.
REVIEWS_SHA256 = (
  '483e5ca059c69ac0e7f1ac461fdbed23cda9ba9db310f80bf302a1c9f178644a'
)

# Data sets whose complete originals have a checksum here.
WITH_SHA256 = ('mnist_idx', 'svhn_mat', 'amazon_reviews')

# Examples in the complete original, by TFDS name and split.
ORIGINAL_COUNTS = {
  'mnist_idx': {'train': 60_000, 'test': 10_000},
  'svhn_mat': {'train': 73_257, 'test': 26_032},
  'mnist_m/original': {'train': 59_001, 'test': 9_001},
  'synth_digits/original': {'train': 479_400, 'test': 9_553},
  'office31/amazon': {'train': 2_817},
  'office31/dslr': {'train': 498},
  'office31/webcam': {'train': 795},
  'amazon_reviews/books': {'train': 6_465},
  'amazon_reviews/dvd': {'train': 5_586},
  'amazon_reviews/electronics': {'train': 7_681},
  'amazon_reviews/kitchen': {'train': 7_945},
}


def sha256(path: os.PathLike[str], entries: Collection[str] = ()) -> str:
  """Returns a file's SHA-256; a folder's is of its files' names and sizes.

  Args:
    path: the file or folder.
    entries: of a folder, only these if given; see `archives.iter_members`.
  """
  path = pathlib.Path(path)
  if path.is_dir():
    return _listing_sha256(path, entries)
  stat = path.stat()
  return _file_sha256(path, stat.st_size, stat.st_mtime_ns)


@functools.lru_cache
def _file_sha256(path: pathlib.Path, size: int, mtime_ns: int) -> str:
  del size, mtime_ns  # a changed file is read again
  with open(path, 'rb') as file:
    return hashlib.file_digest(file, 'sha256').hexdigest()


def _listing_sha256(root: pathlib.Path, entries: Collection[str]) -> str:
  digest = hashlib.sha256()
  for member in archives.iter_members(root, entries):
    digest.update(f'{member.name}\t{member.size}\n'.encode())
  return digest.hexdigest()
