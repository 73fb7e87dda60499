"""Office-31: every layout, odd pictures, corruptions."""

import io
import re
import tarfile

import made_up_files
import numpy as np
import pytest
from PIL import Image

from moda_jax.datasets import checksums, manual
from moda_jax.datasets.office31 import office31_dataset_builder as office31
from moda_jax.errors import UserError


def _build(tmp_path, domain='amazon'):
  return made_up_files.build(f'office31/{domain}', tmp_path, tmp_path / 'data')


def _count_labels(builder):
  names = builder.info.features['label'].names
  found = [
    names[example['label']]
    for example in made_up_files.examples(builder, 'train')
  ]
  return {name: found.count(name) for name in found}


@pytest.mark.parametrize('packing', made_up_files.PACKINGS)
@pytest.mark.parametrize(
  ('prefix', 'middle'),
  [('', ''), ('', 'images/'), ('office31/', 'images/')],
)
def test_every_layout_in_its_own_folder(tmp_path, packing, prefix, middle):
  files = made_up_files.office31_files(prefix, middle)
  if packing == 'folder':
    made_up_files.pack(files, packing, tmp_path, 'office31')
  else:
    made_up_files.pack(files, packing, tmp_path / 'office31', 'any_name')
  builder = _build(tmp_path, 'webcam')
  assert _count_labels(builder) == {'bike': 2, 'pen': 2, 'trash_can': 2}
  assert len(builder.info.features['label'].names) == 31


def test_an_archive_may_have_any_folders_on_top(tmp_path):
  files = made_up_files.office31_files('a/b/')
  made_up_files.pack(files, 'zip', tmp_path / 'office31', 'x')
  assert sum(_count_labels(_build(tmp_path)).values()) == 6


@pytest.mark.parametrize(
  'name', ['office31_256', 'Office-31', 'OFFICE31', 'domain_adaptation_images']
)
def test_an_archive_directly_in_manual_dir(tmp_path, name):
  files = made_up_files.office31_files()
  made_up_files.pack(files, 'tar.gz', tmp_path, name)
  made_up_files.pack({'x': b''}, 'tar', tmp_path, 'another')
  assert sum(_count_labels(_build(tmp_path)).values()) == 6


def test_unpacked_directly_in_manual_dir(tmp_path):
  files = made_up_files.office31_files(prefix='')
  made_up_files.pack(files, 'folder', tmp_path, '.')
  assert sum(_count_labels(_build(tmp_path)).values()) == 6


def _pictures(tmp_path, **pictures):
  files = {
    f'amazon/images/{label}/frame_0001.jpg': data
    for label, data in pictures.items()
  }
  made_up_files.pack(files, 'tar', tmp_path, 'office31')
  builder = _build(tmp_path)
  names = builder.info.features['label'].names
  return {
    names[example['label']]: example['image']
    for example in made_up_files.examples(builder, 'train')
  }


def test_other_sizes_and_modes_become_256_rgb(tmp_path):
  """Against Pillow, which stretches a plain picture to itself."""
  grey = np.full((300, 200), 90, np.uint8)
  transparent = np.full((10, 10, 4), (10, 20, 30, 128), np.uint8)
  large = made_up_files.random_image(3, (300, 300, 3))
  found = _pictures(
    tmp_path,
    mug=made_up_files.encode(grey, 'JPEG'),
    pen=made_up_files.encode(transparent, 'PNG'),
    bike=made_up_files.encode(large, 'PNG'),
  )
  assert all(image.shape == (256, 256, 3) for image in found.values())
  assert np.abs(found['mug'].astype(int) - 90).max() <= 1
  assert (found['pen'] == (10, 20, 30)).all()
  resized = Image.fromarray(large).resize((256, 256), Image.Resampling.BILINEAR)
  assert np.array_equal(found['bike'], np.asarray(resized))


def test_a_jpeg_of_the_right_size_keeps_its_bytes():
  data = made_up_files.encode(
    made_up_files.random_image(0, (256, 256, 3)), 'JPEG'
  )
  assert office31.to_256(data, 'x') is data
  grey = made_up_files.encode(made_up_files.random_image(0, (256, 256)), 'JPEG')
  assert Image.open(io.BytesIO(office31.to_256(grey, 'x'))).mode == 'RGB'


@pytest.mark.parametrize('packing', made_up_files.PACKINGS)
def test_truncated_pictures_are_named_counted_and_leave_nothing(
  tmp_path, packing
):
  files = made_up_files.office31_files()
  for path in ('bike/frame_0002.jpg', 'pen/frame_0001.jpg'):
    full = f'office31/amazon/images/{path}'
    files[full] = files[full][:2000]
  made_up_files.pack(files, packing, tmp_path, 'office31')
  with pytest.raises(UserError, match='2 of 6 files') as caught:
    _build(tmp_path)
  assert 'bike/frame_0002.jpg' in str(caught.value)
  assert 'pen/frame_0001.jpg' in str(caught.value)
  assert not made_up_files.leftovers(tmp_path / 'data')


def test_a_folder_that_is_no_class_is_refused(tmp_path):
  files = made_up_files.office31_files()
  files['office31/amazon/images/teapot/frame_0001.jpg'] = b''
  made_up_files.pack(files, 'zip', tmp_path, 'office31')
  with pytest.raises(UserError, match="'teapot' is not one of the classes"):
    _build(tmp_path)
  assert sum(_count_labels(_build(tmp_path, 'dslr')).values()) == 6


@pytest.mark.parametrize('packing', made_up_files.PACKINGS)
@pytest.mark.parametrize(
  ('stray', 'named'),
  [
    ('amazon/images/.DS_Store', False),
    ('amazon/images/.thumbnails/frame_0001.jpg', False),
    ('__MACOSX/amazon/images/._bike', False),
    ('__MACOSX/amazon/images/bike/._frame_0001.jpg', False),
    ('amazon/images/readme.txt', True),
    ('amazon/images/pen/Thumbs.db', True),
  ],
)
def test_files_that_are_no_pictures_do_no_harm(
  tmp_path, caplog, packing, stray, named
):
  files = made_up_files.office31_files(prefix='')
  files[stray] = b'x'
  made_up_files.pack(files, packing, tmp_path, 'office31')
  assert sum(_count_labels(_build(tmp_path)).values()) == 6
  assert (stray in caplog.text) == named


def test_a_picture_in_no_class_is_refused(tmp_path):
  files = made_up_files.office31_files()
  files['office31/amazon/images/frame_0001.jpg'] = b''
  made_up_files.pack(files, 'tar', tmp_path, 'office31')
  with pytest.raises(UserError, match="'images' is not one of the classes"):
    _build(tmp_path)


@pytest.mark.parametrize('middle', ['', 'images/'])
def test_a_folder_may_hold_some_of_the_domains(tmp_path, middle):
  files = {
    path: data
    for path, data in made_up_files.office31_files('', middle).items()
    if not path.startswith('amazon')
  }
  made_up_files.pack(files, 'folder', tmp_path, 'office31')
  for domain in ('dslr', 'webcam'):
    assert sum(_count_labels(_build(tmp_path, domain)).values()) == 6
  with pytest.raises(UserError, match="no pictures of the domain 'amazon'"):
    _build(tmp_path)


@pytest.mark.parametrize(
  'other', ['amazon/amazon.npz', 'amazon/images/pen/frame_0001.jpg']
)
def test_a_folder_called_like_a_domain_does_not_outdo_the_archive(
  tmp_path, other
):
  files = made_up_files.office31_files()
  made_up_files.pack(files, 'tar', tmp_path / 'office31', 'office31')
  made_up_files.pack({other: b''}, 'folder', tmp_path, '.')
  assert sum(_count_labels(_build(tmp_path)).values()) == 6


def test_a_folder_called_like_a_domain_is_not_taken_for_one(tmp_path):
  made_up_files.pack({'amazon/amazon.npz': b''}, 'folder', tmp_path, '.')
  with pytest.raises(manual.MissingFile, match='a folder with amazon, dslr'):
    _build(tmp_path)


def test_a_picture_in_two_places_is_refused(tmp_path):
  files = made_up_files.office31_files()
  path = 'office31/amazon/images/pen/frame_0001.jpg'
  files['office31/amazon/pen/frame_0001.jpg'] = files[path]
  made_up_files.pack(files, 'zip', tmp_path, 'office31')
  with pytest.raises(
    UserError, match=r'amazon/pen/frame_0001\.jpg \(is there t'
  ):
    _build(tmp_path)


def test_a_domain_that_is_not_inside_is_refused(tmp_path):
  files = {
    path: data
    for path, data in made_up_files.office31_files().items()
    if 'dslr' not in path
  }
  made_up_files.pack(files, 'tar', tmp_path, 'office31')
  with pytest.raises(UserError, match="no pictures of the domain 'dslr'"):
    _build(tmp_path, 'dslr')


def test_the_real_archive_has_all_pictures_and_classes():
  path = made_up_files.real('office31', 'office31_256.tar')
  counts = dict.fromkeys(office31.DOMAINS, 0)
  classes = set()
  with tarfile.open(path) as archive:
    for name in archive.getnames():
      match = re.fullmatch(r'office31/(\w+)/images/(\w+)/frame_\d+\.jpg', name)
      if match:
        counts[match[1]] += 1
        classes.add(match[2])
  assert sorted(classes) == list(office31.CLASSES)
  for domain, count in counts.items():
    expected = checksums.ORIGINAL_COUNTS[f'office31/{domain}']
    assert expected == {'train': count}
