"""TFDS builder of Office-31: things in an office, in three domains."""

import io
import os
import pathlib
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import tensorflow_datasets as tfds
from PIL import Image

from moda_jax.datasets import checksums, manual
from moda_jax.errors import UserError
from moda_jax.files import archives, images

DOMAINS = ('amazon', 'dslr', 'webcam')
CLASSES = [
  'back_pack',
  'bike',
  'bike_helmet',
  'bookcase',
  'bottle',
  'calculator',
  'desk_chair',
  'desk_lamp',
  'desktop_computer',
  'file_cabinet',
  'headphones',
  'keyboard',
  'laptop_computer',
  'letter_tray',
  'mobile_phone',
  'monitor',
  'mouse',
  'mug',
  'paper_notebook',
  'pen',
  'phone',
  'printer',
  'projector',
  'punchers',
  'ring_binder',
  'ruler',
  'scissors',
  'speaker',
  'stapler',
  'tape_dispenser',
  'trash_can',
]
SIZE = 256
INSTRUCTIONS = (
  'Office-31: put the archive of it (domain_adaptation_images.tar.gz or '
  'another .tar, .tar.gz or .zip with <domain>/images/<class>/*.jpg inside; '
  'https://faculty.cc.gatech.edu/~judy/domainadapt/ says where it is), or '
  'what it unpacks to, into manual_dir or its folder office31/.'
)

_FOLDERS = ('office31', 'office_31', 'Original_images')
_CITATION = """
@inproceedings{saenko2010adapting,
  title={Adapting visual category models to new domains},
  author={Saenko, Kate and Kulis, Brian and Fritz, Mario and Darrell, Trevor},
  booktitle={ECCV},
  year={2010}
}
"""


class Builder(tfds.core.GeneratorBasedBuilder):
  """Office-31 at 256×256; one split, `train`, since the protocol has one."""

  VERSION = tfds.core.Version('1.0.0')
  RELEASE_NOTES: ClassVar[dict[str, str]] = {'1.0.0': 'First release.'}
  MANUAL_DOWNLOAD_INSTRUCTIONS = INSTRUCTIONS
  BUILDER_CONFIGS: ClassVar[list[tfds.core.BuilderConfig]] = [
    tfds.core.BuilderConfig(name=domain, description=f'The domain {domain}.')
    for domain in DOMAINS
  ]

  def _info(self) -> tfds.core.DatasetInfo:
    return tfds.core.DatasetInfo(
      builder=self,
      description='Office-31: 31 classes, pictures resized to 256×256.',
      features=tfds.features.FeaturesDict(
        {
          'image': tfds.features.Image(shape=(SIZE, SIZE, 3), dtype=np.uint8),
          'label': tfds.features.ClassLabel(names=CLASSES),
        }
      ),
      supervised_keys=('image', 'label'),
      homepage='https://faculty.cc.gatech.edu/~judy/domainadapt/',
      citation=_CITATION,
      metadata=tfds.core.MetadataDict(),
    )

  def _split_generators(
    self, dl_manager: tfds.download.DownloadManager
  ) -> dict[str, Iterator[tuple[str, dict[str, Any]]]]:
    manual_dir = dl_manager.manual_dir
    manual.record_sources(self, find_sources(manual_dir))
    return {'train': self._generate_examples(_find(manual_dir))}

  def _generate_examples(
    self, tree: pathlib.Path
  ) -> Iterator[tuple[str, dict[str, Any]]]:
    domain = self.builder_config.name
    total, others, seen = 0, [], set()
    errors: list[UserError | str] = []
    for member in archives.iter_members(tree, DOMAINS):
      folder = class_folder(member, domain)
      if folder is None:
        continue
      if not images.is_image_name(member.name):
        others.append(member.name)
        continue
      label = _check_class(member, folder)
      total += 1
      key = f'{label}/{member.parts[-1]}'
      if key in seen:
        errors.append(f'{member.name} (is there twice)')
        continue
      seen.add(key)
      try:
        image = to_256(member.read(), member.name)
      except images.UnreadableImage as error:
        errors.append(error)
        continue
      yield key, {'image': image, 'label': label}
    images.warn_of_others(others, tree)
    images.refuse_unreadable(errors, total, f'{tree}, {domain}')
    if not total:
      raise UserError(f'{tree} holds no pictures of the domain {domain!r}.')


def class_folder(member: archives.Member, domain: str) -> str | None:
  """Returns the class in `…/<domain>/[images/]<class>/<file>`, or None."""
  folders = list(member.parts[:-1])
  if len(folders) > 2 and folders[-2] == 'images':
    folders.pop(-2)
  return folders[-1] if folders[-2:-1] == [domain] else None


def _check_class(member: archives.Member, folder: str) -> str:
  if folder not in CLASSES:
    raise UserError(
      f'{member.name}: {folder!r} is not one of the classes of Office-31, '
      f'which are {", ".join(CLASSES)}.'
    )
  return folder


def to_256(data: bytes, name: str) -> bytes:
  """Resizes a picture file to 256×256; leaves an RGB JPEG of that size."""
  image = images.decode(data, name)
  if image.size == (SIZE, SIZE) and (image.format, image.mode) == (
    'JPEG',
    'RGB',
  ):
    return data
  image = images.to_rgb(image).resize((SIZE, SIZE), Image.Resampling.BILINEAR)
  png = io.BytesIO()
  image.save(png, 'PNG')
  return png.getvalue()


def _find(manual_dir: os.PathLike[str]) -> pathlib.Path:
  return manual.find_tree(
    manual_dir,
    _FOLDERS,
    _is_unpacked,
    f'a folder with {", ".join(DOMAINS)} or some of them in it',
    ('*office*31*', '*OFFICE*31*', '*Office*31*', 'domain_adaptation_images*'),
    INSTRUCTIONS,
  )


def _is_unpacked(root: pathlib.Path) -> bool:
  """Returns whether a domain is there, not just a folder with its name."""
  return any(
    (root / domain / folder).is_dir()
    for domain in DOMAINS
    for folder in ('images', *CLASSES)
  )


def find_sources(manual_dir: os.PathLike[str]) -> dict[str, manual.Source]:
  """Returns what is in `manual_dir`, or raises `MissingFile`."""
  tree = _find(manual_dir)
  file = manual.relative(tree, manual_dir)
  return {
    'train': manual.Source(file=file, sha256=checksums.sha256(tree, DOMAINS))
  }
