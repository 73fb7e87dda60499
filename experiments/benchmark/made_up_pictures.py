"""Writes very many made-up JPEG files, as a folder or as TFDS's DomainNet.

Few of them differ, so that they are soon made; each is a file of its own.
"""

import io
import pathlib
from typing import Any
from unittest import mock

import numpy as np
from PIL import Image

DOMAINS = ('clipart', 'quickdraw', 'real', 'sketch')
_CLASSES = 50
_OF_TEST = 10  # of DomainNet's pictures every tenth is for testing


def write_pictures(
  folder: pathlib.Path, count: int, different: int = 200
) -> int:
  """Writes `<domain>/<class>/<number>.jpg`; returns their bytes in all.

  Args:
    folder: where they go.
    count: how many files, of all domains.
    different: how many pictures there are that differ.
  """
  rng = np.random.default_rng(0)
  encoded = [_encode(rng) for _ in range(different)]
  total = 0
  for domain in DOMAINS:
    for i in range(count // len(DOMAINS)):
      file = folder / _name(domain, i)
      file.parent.mkdir(parents=True, exist_ok=True)
      data = encoded[rng.integers(different)]
      file.write_bytes(data)
      total += len(data)
  return total


def _name(domain: str, i: int) -> str:
  return f'{domain}/class{i % _CLASSES:03d}/{i}.jpg'


def _encode(rng: np.random.Generator) -> bytes:
  coarse = rng.integers(0, 256, (40, 50, 3), np.uint8)
  smooth = Image.fromarray(coarse).resize((500, 400), Image.Resampling.BICUBIC)
  noise = rng.normal(0, 6, (400, 500, 3))
  pixels = np.clip(np.asarray(smooth) + noise, 0, 255).astype(np.uint8)
  file = io.BytesIO()
  Image.fromarray(pixels).save(file, 'JPEG', quality=85)
  return file.getvalue()


def prepare_domainnet(
  pictures: pathlib.Path, count: int, data_dir: pathlib.Path
) -> None:
  """Prepares pictures with TFDS's own builder of DomainNet, as ArrayRecord.

  Args:
    pictures: what `write_pictures` has written, in place of the archives that
      the builder downloads.
    count: how many those are.
    data_dir: TFDS's folder.
  """
  import tensorflow_datasets as tfds
  from tensorflow_datasets.core.utils import tqdm_utils

  for domain in DOMAINS:
    lists = _list_splits(pictures, domain, count // len(DOMAINS))
    builder: Any = tfds.builder(
      f'domainnet/{domain}', data_dir=data_dir, file_format='array_record'
    )
    with (
      mock.patch.object(tqdm_utils, '_active', False),  # no progress bars
      mock.patch.multiple(
        tfds.download.DownloadManager,
        download_and_extract=lambda self, url: str(pictures),
        download=lambda self, urls, found=lists: found,
      ),
    ):
      builder.download_and_prepare()


def _list_splits(
  pictures: pathlib.Path, domain: str, count: int
) -> dict[str, str]:
  """Writes the lists of pictures and classes that DomainNet comes with."""
  lines: dict[str, list[str]] = {'train': [], 'test': []}
  for i in range(count):
    split = 'train' if i % _OF_TEST else 'test'
    lines[split].append(f'{_name(domain, i)} {i % _CLASSES}')
  files = {split: pictures / f'{domain}_{split}.txt' for split in lines}
  for split, file in files.items():
    file.write_text('\n'.join(lines[split]) + '\n')
  return {split: str(file) for split, file in files.items()}
