"""Pictures replaced by the features of a fixed network, computed once.

Features are kept in a cache, some pictures to a file, under a fingerprint of
the pictures, the weights and the size: an interrupted computation goes on where
it was, and the next run with the same pictures computes nothing.
"""

import hashlib
import logging
import pathlib
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf
import tqdm

from moda_jax.data import weak
from moda_jax.data.domains import Domain, Domains, map_domains
from moda_jax.data.options import ViewOptions
from moda_jax.data.pictures import Pictures, as_pictures
from moda_jax.data.rows import are_rows
from moda_jax.errors import UserError
from moda_jax.files.atomic import write_whole
from moda_jax.models.backbone import Backbone
from moda_jax.training.progress import format_duration

_log = logging.getLogger(__name__)
_CHUNK = 64  # pictures to a file
_VERSION = 2  # of what is computed
_SECONDS = 20.0  # between two lines where there is no terminal


class Embedding(NamedTuple):
  """How pictures become features.

  Attributes:
    backbone: the fixed network.
    size: what pictures are brought to.
    views: how many weak views of each there are, the picture itself included.
    options: how the others are distorted.
    cache: the folder that features are kept in; None keeps none.
  """

  backbone: Backbone
  size: int
  views: int
  options: ViewOptions
  cache: pathlib.Path | None

  def describe_view(self, view: int) -> str:
    """Says how a view is made; the same for the same features."""
    text = f'{_VERSION} {self.backbone.description} {self.size}'
    if view == 0:
      return text
    return f'{text} {view} {self.options.weak_flip} {self._distortion()}'

  def make_view(self, pictures: np.ndarray, view: int, key: str) -> np.ndarray:
    """Returns the pictures as they are, or drawn from `key` alone."""
    if view == 0:
      return pictures
    seed = tf.constant([int(key[:15], 16), view], tf.int64)
    rotation, translation = self._distortion()
    flip = self.options.weak_flip
    return weak.weak_view(
      tf.constant(pictures), seed, rotation, translation, flip
    ).numpy()

  def _distortion(self) -> tuple[float, float]:
    if self.options.weak_augment == 'never':
      return 0.0, 0.0
    return self.options.weak_rotation, self.options.weak_translation


def embed_domains(domains: Domains, embedding: Embedding) -> Domains:
  """Returns the domains with features for pictures."""
  if not embedding.size:
    raise UserError(
      'config.data.image_size = 0: set what pictures are brought to before '
      'their features are computed, such as 128 or 224.'
    )
  for domain in (*domains.sources, domains.target):
    if are_rows(domain.inputs):
      raise UserError(
        f"config.network.name = 'features' takes pictures; '{domain.name}' has "
        "rows of features already, which network 'mlp' takes."
      )
  return map_domains(domains, lambda domain: _embed(domain, embedding))


def _embed(domain: Domain, embedding: Embedding) -> Domain:
  views = embed(as_pictures(domain.inputs), embedding, domain.name)
  return domain._replace(
    inputs=views[:, 0], views=views if embedding.views > 1 else None
  )


def embed(pictures: Pictures, embedding: Embedding, name: str) -> np.ndarray:
  """Returns the features of pictures, `[N, views, F]`."""
  chunks = list(_chunks(len(pictures)))
  keys = [_fingerprints(pictures, places, embedding) for places in chunks]
  found = [
    [_load(embedding, key, len(places)) for key in own]
    for places, own in zip(chunks, keys, strict=True)
  ]
  count = sum(
    len(places)
    for places, own in zip(chunks, found, strict=True)
    for rows in own
    if rows is None
  )
  total = len(pictures) * embedding.views
  _log.info(
    '%s: features of %d pictures by ResNet-50 at %d × %d%s',
    name,
    len(pictures),
    embedding.size,
    embedding.size,
    f', {total - count} of {total} views from {embedding.cache}'
    if embedding.cache and count < total
    else '',
  )
  with _Bar(name, count) as bar:
    made = [
      _compute(pictures, *parts, embedding, bar)
      for parts in zip(chunks, keys, found, strict=True)
    ]
  return np.concatenate(made)


def _chunks(count: int) -> Iterator[range]:
  for start in range(0, count, _CHUNK):
    yield range(start, min(start + _CHUNK, count))


def _fingerprints(
  pictures: Pictures, places: range, embedding: Embedding
) -> list[str]:
  """Returns what the file of each view of some pictures is called."""
  content = b''.join(pictures.digest(places))
  return [
    hashlib.sha256(embedding.describe_view(v).encode() + content).hexdigest()
    for v in range(embedding.views)
  ]


def _compute(
  pictures: Pictures,
  places: range,
  keys: Sequence[str],
  found: Sequence[np.ndarray | None],
  embedding: Embedding,
  bar: '_Bar',
) -> np.ndarray:
  """Computes the views that are not found; returns all, `[n, views, F]`."""
  views = [rows for rows in found if rows is not None]
  if len(views) == len(keys):
    return np.stack(views, axis=1)
  read, views = pictures.read(places, embedding.size), []
  for view, (key, rows) in enumerate(zip(keys, found, strict=True)):
    if rows is None:
      rows = embedding.backbone(embedding.make_view(read, view, key))
      _save(embedding, key, rows)
      bar.update(len(places))
    views.append(rows)
  return np.stack(views, axis=1)


def _load(embedding: Embedding, key: str, count: int) -> np.ndarray | None:
  """Returns the features of `count` pictures; None without a sound file."""
  if embedding.cache is None:
    return None
  try:
    rows = np.load(embedding.cache / f'{key}.npy', allow_pickle=False)
  except (OSError, ValueError, EOFError):
    return None
  is_sound = rows.shape == (count, embedding.backbone.features)
  return rows if is_sound and rows.dtype == np.float32 else None


def _save(embedding: Embedding, key: str, rows: np.ndarray) -> None:
  if embedding.cache is None:
    return
  path = embedding.cache / f'{key}.npy'
  try:
    # Several processes of a run compute the same features.
    own = path.with_name(f'{path.name}.{uuid.uuid4().hex}')
    with write_whole(own, 'wb') as file:
      np.save(file, rows)
    own.replace(path)
  except OSError as error:
    raise UserError(
      f'Features cannot be kept in {embedding.cache}: {error}. Choose another '
      'folder with config.network.feature_cache, or off.'
    ) from error


class _Bar:
  """A progress bar in a terminal, else a line from time to time."""

  def __init__(self, name: str, total: int):
    self._name, self._total, self._done = name, total, 0
    self._since = self._shown = time.monotonic()
    self._bar = tqdm.tqdm(
      total=total,
      desc=f'features of {name}',
      unit='pictures',
      disable=not total or not sys.stderr.isatty(),
    )

  def __enter__(self) -> '_Bar':
    return self

  def __exit__(self, *_: object) -> None:
    self._bar.close()

  def update(self, count: int) -> None:
    """Counts pictures that are done."""
    self._bar.update(count)
    self._done += count
    now = time.monotonic()
    if self._bar.disable and now - self._shown > _SECONDS:
      self._shown = now
      left = (self._total - self._done) * (now - self._since) / self._done
      _log.info(
        'features of %s: %d of %d, %s left',
        self._name,
        self._done,
        self._total,
        format_duration(left),
      )
