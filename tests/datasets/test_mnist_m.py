"""MNIST-M: original layouts, and rebuilt by its recipe."""

import io
import logging
import re
import tarfile

import made_up_files
import numpy as np
import pytest

from moda_jax.datasets import manual
from moda_jax.datasets.mnist_idx import mnist_idx_dataset_builder as mnist_idx
from moda_jax.datasets.mnist_m import original, rebuilt
from moda_jax.errors import UserError
from moda_jax.files import archives, images


def _check(builder, truth):
  for split, files in truth.items():
    labels = {image.tobytes(): label for image, label in files.values()}
    examples = made_up_files.examples(builder, split)
    assert len(examples) == len(files)
    for example in examples:
      assert labels[example['image'].tobytes()] == example['label']


@pytest.mark.parametrize('packing', made_up_files.PACKINGS)
@pytest.mark.parametrize('folder', ['mnist_m', '.'])
def test_every_layout(tmp_path, folder, packing):
  files, truth = made_up_files.mnist_m_files()
  if packing == 'folder':  # the archive's own top folder is `mnist_m`
    made_up_files.pack(files, packing, tmp_path, folder)
  else:
    made_up_files.pack(files, packing, tmp_path / folder, 'mnist_m')
  builder = made_up_files.build('mnist_m/original', tmp_path, tmp_path / 'data')
  _check(builder, truth)


def test_files_directly_in_manual_dir_among_others(tmp_path):
  files, truth = made_up_files.mnist_m_files()
  flat = {path.removeprefix('mnist_m/'): data for path, data in files.items()}
  made_up_files.pack(flat, 'folder', tmp_path, '.')
  (tmp_path / 'stranger').symlink_to('/etc')
  builder = made_up_files.build('mnist_m/original', tmp_path, tmp_path / 'data')
  _check(builder, truth)


def test_two_archives_are_ambiguous(tmp_path):
  files, _ = made_up_files.mnist_m_files()
  for packing in ('tar', 'zip'):
    made_up_files.pack(files, packing, tmp_path / 'mnist_m', 'mnist_m')
  with pytest.raises(
    UserError, match=r'several archives: mnist_m\.tar, mnist_'
  ):
    made_up_files.build('mnist_m/original', tmp_path, tmp_path / 'data')


def test_nothing_there(tmp_path):
  (tmp_path / 'other').touch()
  with pytest.raises(manual.MissingFile, match='mnist_m_train_labels'):
    made_up_files.build('mnist_m/original', tmp_path, tmp_path / 'data')


def test_grey_and_palette_pictures_become_rgb(tmp_path):
  files, _ = made_up_files.mnist_m_files(train=2, test=1)
  grey = made_up_files.random_image(5, (32, 32))
  files['mnist_m/mnist_m_train/00000007.png'] = made_up_files.encode(grey)
  made_up_files.pack(files, 'tar', tmp_path, 'mnist_m')
  builder = made_up_files.build('mnist_m/original', tmp_path, tmp_path / 'data')
  found = {
    example['image'].tobytes()
    for example in made_up_files.examples(builder, 'train')
  }
  assert np.stack([grey] * 3, -1).tobytes() in found


def _corrupt(files, what):
  path = 'mnist_m/mnist_m_train/00000035.png'
  labels = 'mnist_m/mnist_m_train_labels.txt'
  if what == 'truncated':
    files[path] = files[path][:900]
  elif what == 'text':
    files[path] = b'no picture'
  elif what == 'size':
    image = made_up_files.random_image(0, (28, 28, 3))
    files[path] = made_up_files.encode(image)
  elif what == 'missing':
    del files[path]
  elif what == 'unlabelled':
    files['mnist_m/mnist_m_train/99999999.png'] = files[path]
  elif what == 'label':
    files[labels] = files[labels].replace(b'00000035.png 5', b'00000035.png 12')
  elif what == 'line':
    files[labels] = files[labels].replace(b'00000035.png 5', b'00000035.png')
  elif what == 'twice':
    files[labels] += b'00000035.png 3\n'
  elif what == 'empty':
    files[labels] = b''
  else:
    del files[labels]


@pytest.mark.parametrize('packing', made_up_files.PACKINGS)
@pytest.mark.parametrize(
  ('what', 'message'),
  [
    ('truncated', r'1 of 12 files .*\n.*mnist_m_train/00000035\.png \('),
    ('text', r'1 of 12 files .*\n.*mnist_m_train/00000035\.png \('),
    ('size', r'00000035\.png \(is 28×28, not 32×32\)'),
    ('missing', r'00000035\.png \(labelled but not there\)'),
    ('unlabelled', r'99999999\.png \(has no label\)'),
    ('label', '1 of 12 labels are out of range'),
    ('line', r"line 8: '00000035\.png'"),
    ('twice', r"line 13: '00000035\.png 3'"),
    ('empty', 'mnist_m_train_labels.txt: there are no labels'),
    ('labels', 'mnist_m_train_labels.txt'),
  ],
)
def test_a_corruption_is_named_and_leaves_nothing(
  tmp_path, packing, what, message
):
  files, _ = made_up_files.mnist_m_files()
  _corrupt(files, what)
  made_up_files.pack(files, packing, tmp_path, 'mnist_m')
  with pytest.raises(UserError, match=message):
    made_up_files.build('mnist_m/original', tmp_path, tmp_path / 'data')
  assert not made_up_files.leftovers(tmp_path / 'data')


def test_other_files_among_the_pictures_are_named(tmp_path, caplog):
  files, _ = made_up_files.mnist_m_files()
  files['mnist_m/mnist_m_train/Thumbs.db'] = b'x'
  tree = made_up_files.pack(files, 'tar', tmp_path, 'mnist_m')
  with caplog.at_level(logging.WARNING):
    assert len(list(original.generate(tree, 'train'))) == 12
  assert '1 files are not pictures' in caplog.text
  assert 'Thumbs.db' in caplog.text


def _real_members(count):
  """Reads the first pictures of the real archive, by tarfile alone."""
  with tarfile.open(made_up_files.real('mnist_m', 'mnist_m.tar')) as archive:
    for info in archive:
      match = re.fullmatch(r'.*mnist_m_train/(\d{8})\.png', info.name)
      if match:
        yield int(match[1]), archive.extractfile(info).read()
        count -= 1
        if not count:
          return


def test_real_labels_are_those_of_mnist():
  """The files' names are MNIST's indices, which gives an oracle."""
  tree = made_up_files.real('mnist_m', 'mnist_m.tar')
  made_up_files.real('mnist')
  for split in ('train', 'test'):
    labels = original.read_labels(tree, split)
    _, mnist = mnist_idx.read_split(made_up_files.REAL, split)
    assert len(labels) > 1000
    for name, label in labels.items():
      assert mnist[int(name.removesuffix('.png'))] == label


def test_real_pictures_are_photographs_inverted_where_mnist_has_ink():
  """Rebuilding does to a plain patch what the original shows."""
  made_up_files.real('mnist')
  mnist, _ = mnist_idx.read_split(made_up_files.REAL, 'train')
  checked = 0
  for index, data in _real_members(1500):
    picture = np.asarray(images.to_rgb(images.decode(data, '')))
    ground = picture[[0, -1]].reshape(-1, 3)
    if np.ptp(ground, axis=0).max() > 3:
      continue  # not a plain patch
    patch = np.broadcast_to(np.median(ground, 0).astype(np.uint8), (32, 32, 3))
    expected = rebuilt.blend(patch, mnist[index]).astype(int)
    ink = np.pad(mnist[index], 2) > 0
    assert np.median(np.abs(picture - expected)[ink]) <= 3
    checked += 1
  assert checked >= 3


def _photographs(place, names=('a.jpg', 'sub/b.png', 'c.webp', 'notes.txt')):
  files = {}
  for number, name in enumerate(names):
    kind = {'jpg': 'JPEG', 'png': 'PNG'}.get(name[-3:], 'WEBP')
    image = made_up_files.random_image(number, (40 + number, 50, 3))
    files[name] = (
      b'text' if name.endswith('txt') else made_up_files.encode(image, kind)
    )
  return made_up_files.pack(files, 'folder', place, 'photographs')


def test_rebuilt_is_the_absolute_difference_with_a_patch(tmp_path, monkeypatch):
  arrays = made_up_files.write_mnist(tmp_path, train=30, test=12)
  monkeypatch.setattr(rebuilt, 'COUNTS', {'train': 25, 'test': 12})
  folder = _photographs(tmp_path)
  builder = made_up_files.build('mnist_m/rebuilt', tmp_path, tmp_path / 'data')
  photographs = [
    np.asarray(images.to_rgb(images.decode(member.read(), member.name)))
    for member in archives.iter_members(folder)
    if images.is_image_name(member.name)
  ]
  assert builder.info.splits['train'].num_examples == 25
  for split, (drawings, labels) in arrays.items():
    found = made_up_files.examples(builder, split)
    for example in found:
      assert any(
        _is_blend(example['image'], drawing, photographs)
        for drawing in drawings[labels == example['label']]
      )


def _is_blend(image, drawing, photographs):
  """Returns whether image = |patch − 255·ink| for a patch of any photograph."""
  digit = 255 * (np.pad(drawing, 2) > 0)[..., np.newaxis].astype(int)
  patch = np.abs(image.astype(int) - digit).astype(np.uint8)
  return any(
    patch[0, 0].tobytes() in photograph.tobytes()
    and any(
      np.array_equal(patch, photograph[top : top + 32, left : left + 32])
      for top in range(photograph.shape[0] - 31)
      for left in range(photograph.shape[1] - 31)
    )
    for photograph in photographs
  )


def test_rebuilt_is_the_same_again_and_from_an_archive(tmp_path):
  made_up_files.write_mnist(tmp_path)
  folder = _photographs(tmp_path)
  first, again = (dict(rebuilt.generate(tmp_path, 'test')) for _ in range(2))
  files = {
    member.name: member.read() for member in archives.iter_members(folder)
  }
  other = tmp_path / 'other'
  made_up_files.write_mnist(other)
  made_up_files.pack(dict(reversed(files.items())), 'zip', other, 'photographs')
  packed = dict(rebuilt.generate(other, 'test'))
  for key, example in first.items():
    assert np.array_equal(example['image'], again[key]['image'])
    assert np.array_equal(example['image'], packed[key]['image'])
    assert example['label'] == packed[key]['label']
  assert len(first) == len(packed) == 20


def test_places_are_spread_and_unrelated():
  places = rebuilt.choose_places('train', 20_000)
  assert np.allclose(places.mean(0), 0.5, atol=0.01)
  correlation = np.corrcoef(places.T)
  assert np.abs(correlation - np.eye(3)).max() < 0.02


def test_rebuilt_refuses_photographs_it_cannot_use(tmp_path):
  made_up_files.write_mnist(tmp_path)
  with pytest.raises(manual.MissingFile, match='photographs'):
    list(rebuilt.generate(tmp_path, 'test'))
  folder = _photographs(tmp_path)
  small = made_up_files.encode(made_up_files.random_image(0, (31, 90, 3)))
  (folder / 'small.png').write_bytes(small)
  (folder / 'cut.png').write_bytes(small[:500])
  with pytest.raises(UserError, match='2 of 5 files') as caught:
    list(rebuilt.generate(tmp_path, 'test'))
  assert 'small.png (90×31 is smaller' in str(caught.value)


def test_a_photograph_that_an_archive_has_twice_is_refused(tmp_path):
  made_up_files.write_mnist(tmp_path)
  photograph = made_up_files.random_image(0, (40, 50, 3))
  data = made_up_files.encode(photograph)
  with tarfile.open(tmp_path / 'photographs.tar', 'w') as archive:
    for name in ('a.png', 'b.png', 'a.png'):
      info = tarfile.TarInfo(name)
      info.size = len(data)
      archive.addfile(info, io.BytesIO(data))
  with pytest.raises(UserError, match=r'photographs\.tar: a\.png is there t'):
    made_up_files.build('mnist_m/rebuilt', tmp_path, tmp_path / 'data')
  assert not made_up_files.leftovers(tmp_path / 'data')


def test_rebuilt_needs_at_least_one_picture(tmp_path):
  made_up_files.write_mnist(tmp_path)
  _photographs(tmp_path, ('notes.txt',))
  with pytest.raises(manual.MissingFile, match='pictures in'):
    list(rebuilt.generate(tmp_path, 'test'))
