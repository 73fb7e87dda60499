import io
import pathlib

import numpy as np
import pytest
from PIL import Image

from moda_jax.data import read_files
from moda_jax.data.pictures import PictureFiles
from moda_jax.data.streamed import StreamedPictures
from moda_jax.errors import UserError

RNG = np.random.default_rng(0)


def read_folder(path, size):
  domain = read_files.open_folder('d', path)
  return domain._replace(inputs=StreamedPictures(domain.inputs, size)[:])


def write(path, mode='RGB', size=(40, 30)):
  """Writes a random picture; returns what Pillow reads of it as RGB."""
  path.parent.mkdir(parents=True, exist_ok=True)
  pixels = RNG.integers(0, 256, (size[1], size[0], 3), np.uint8)
  Image.fromarray(pixels).convert(mode).save(path)
  return Image.open(path).convert('RGB')


@pytest.mark.parametrize(
  ('file', 'mode'),
  [
    ('x.png', 'RGB'),
    ('x.png', 'L'),
    ('x.png', '1'),
    ('x.png', 'P'),
    ('x.JPG', 'RGB'),
    ('x.jpeg', 'L'),
    ('x.bmp', 'RGB'),
    ('x.webp', 'RGB'),
    ('x.tif', 'RGB'),
    ('x.TIFF', 'L'),
  ],
)
def test_any_format_mode_and_size_is_read_as_pillow_does(tmp_path, file, mode):
  picture = write(tmp_path / 'd' / 'c' / file, mode)
  domain = read_folder(str(tmp_path / 'd'), 16)
  expected = picture.resize((16, 16), Image.Resampling.BILINEAR)
  np.testing.assert_array_equal(domain.inputs[0], np.asarray(expected))


def make_tree(root):
  for name in ('b/2.png', 'b/1.png', 'a/3.png'):
    write(root / name)


def test_classes_are_folders_and_examples_their_files(tmp_path):
  make_tree(tmp_path)
  (tmp_path / 'empty').mkdir()
  (tmp_path / '.hidden').mkdir()
  domain = read_folder(str(tmp_path), 8)
  assert domain.classes == ('a', 'b')
  assert domain.examples == ('a/3.png', 'b/1.png', 'b/2.png')
  assert domain.labels.tolist() == [0, 1, 1]
  assert domain.inputs.shape == (3, 8, 8, 3)


def test_the_layout_of_office31_is_read(tmp_path):
  make_tree(tmp_path / 'images')
  assert read_folder(str(tmp_path), 8).classes == ('a', 'b')


def test_what_lies_beside_images_is_named(tmp_path, caplog):
  make_tree(tmp_path / 'images')
  (tmp_path / 'readme.txt').write_text('')
  (tmp_path / '.DS_Store').write_text('')
  assert read_folder(str(tmp_path), 8).classes == ('a', 'b')
  assert '1 files are not pictures' in caplog.text
  assert 'readme.txt' in caplog.text


def test_flat_pictures_have_no_labels(tmp_path, caplog):
  write(tmp_path / 'y.png')
  write(tmp_path / 'x.png')
  for name in ('notes.txt', 'z.gif', 'y.doc', '.hidden.png'):
    (tmp_path / name).write_text('seen in May')
  domain = read_folder(str(tmp_path), 8)
  assert domain.labels is None
  assert domain.examples == ('x.png', 'y.png')
  assert f'{tmp_path}: 3 files are not pictures of the kinds' in caplog.text
  assert 'notes.txt, y.doc, z.gif' in caplog.text


def test_folders_within_classes_are_named(tmp_path, caplog):
  make_tree(tmp_path)
  write(tmp_path / 'b' / 'deeper' / '4.png')
  assert read_folder(str(tmp_path), 8).size == 3
  assert '1 folders within are not looked into, such as deeper' in caplog.text


def test_photographs_are_turned_upright(tmp_path):
  exif = Image.Exif()
  exif[0x0112] = 6  # the camera stood on its side
  pixels = RNG.integers(0, 256, (8, 8, 3), np.uint8)
  Image.fromarray(pixels).save(tmp_path / 'x.png', exif=exif)
  (image,) = read_folder(str(tmp_path), 8).inputs
  np.testing.assert_array_equal(image, np.rot90(pixels, -1))


def test_16_bits_of_grey_are_read(tmp_path):
  values = np.arange(64, dtype=np.uint16).reshape(8, 8) * 1024
  Image.fromarray(values).save(tmp_path / 'x.png')
  (image,) = read_folder(str(tmp_path), 8).inputs
  np.testing.assert_array_equal(image, np.stack([values // 256] * 3, -1))


def break_mixed(root):
  make_tree(root)
  write(root / 'loose.png')
  return 'loose.png'


def break_beside_images(root):
  write(root / 'images' / '1.png')
  write(root / 'loose.png')
  return 'loose.png'


def break_truncated(root):
  make_tree(root)
  content = (root / 'a' / '3.png').read_bytes()
  (root / 'a' / '3.png').write_bytes(content[: len(content) // 2])
  return '1 of 3 files'


def break_no_picture(root):
  make_tree(root)
  (root / 'b' / '1.png').write_text('no picture')
  return 'b/1.png'


def break_with_text(root):
  make_tree(root)
  (root / 'b' / 'x.jpg').write_text('hello')
  return r'b/x.jpg \(not a picture of the kinds read: JPEG, .*, TIFF\)'


def break_with_nothing(root):
  make_tree(root)
  (root / 'b' / 'x.jpg').write_bytes(b'')
  return r'b/x.jpg \(the file is empty\)'


def break_with_heic(root):
  make_tree(root)
  (root / 'b' / 'x.HEIC').write_bytes(b'\0\0\0\x18ftypheic' + bytes(50))
  return r'b/x.HEIC \(HEIC and AVIF are not read; convert it'


def break_link(root):
  make_tree(root)
  (root / 'b' / 'x.jpg').symlink_to('/none/x.jpg')
  return r'b/x.jpg \(a link to /none/x.jpg, which is not there\)'


def break_link_to_class(root):
  make_tree(root)
  (root / 'c').symlink_to('/none/c')
  return '/c is a link to /none/c, which is not there'


def break_bomb(root):
  make_tree(root)
  bomb = io.BytesIO()
  Image.new('1', (10_000, 10_000)).save(bomb, 'PNG')
  (root / 'a' / 'bomb.png').write_bytes(bomb.getvalue())
  return 'a/bomb.png'


def break_empty(root):
  (root / 'a').mkdir()
  return 'no pictures'


@pytest.mark.parametrize(
  'damage',
  [
    break_mixed,
    break_beside_images,
    break_truncated,
    break_no_picture,
    break_with_text,
    break_with_nothing,
    break_with_heic,
    break_link,
    break_link_to_class,
    break_bomb,
    break_empty,
  ],
)
def test_what_cannot_be_read_is_named(tmp_path, damage):
  message = damage(tmp_path)
  with pytest.raises(UserError, match=message) as error:
    read_folder(str(tmp_path), 8)
  assert '0x' not in str(error.value)  # an address in memory


def test_a_domain_that_is_a_dead_link_is_refused(tmp_path):
  for name in ('a', 'b'):
    (tmp_path / name).mkdir()
  (tmp_path / 'c').symlink_to('/none/c')
  with pytest.raises(UserError, match='/c is a link to /none/c, which is not'):
    read_files.find_folders(str(tmp_path))


def test_all_unreadable_is_refused_even_where_some_may_be(tmp_path):
  (tmp_path / 'x.jpg').write_text('hello')
  domain = read_files.open_folder('d', str(tmp_path))
  with pytest.raises(UserError, match=r'1 of 1 files of .*\n  x\.jpg'):
    read_files.skip_unreadable(domain)


def test_domains_are_found_by_name(tmp_path):
  for name in ('one', 'two'):
    write(tmp_path / name / 'c' / 'x.png')
    np.savez(tmp_path / f'{name}.npz', images=np.zeros((1, 8, 8), np.uint8))
  folders = read_files.find_folders(str(tmp_path))
  assert folders == {n: f'folder:{tmp_path / n}' for n in ('one', 'two')}
  arrays = read_files.find_arrays(str(tmp_path))
  assert arrays == {n: f'npz:{tmp_path / n}.npz' for n in ('one', 'two')}


@pytest.mark.parametrize(
  ('folders', 'message'),
  [([], '0 folders'), (['a'], '1 folders'), (['a', 'b.c'], "'b.c'")],
)
def test_a_folder_without_domains_is_refused(tmp_path, folders, message):
  for name in folders:
    (tmp_path / name).mkdir()
  (tmp_path / '__MACOSX').mkdir()
  with pytest.raises(UserError, match=message):
    read_files.find_folders(str(tmp_path))


def test_a_missing_folder_is_refused(tmp_path):
  with pytest.raises(UserError, match='nowhere'):
    read_files.find_folders(str(tmp_path / 'nowhere'))


def save(path, **arrays):
  np.savez(path, **arrays)
  return read_files.read_arrays('d', str(path))


def test_arrays_are_read(tmp_path):
  images = RNG.integers(0, 256, (3, 8, 9, 3), np.uint8)
  labels = np.asarray([1, 0, 1])
  classes = np.asarray(['mug', 'pen'])
  path = tmp_path / 'd.npz'
  domain = save(path, images=images, labels=labels, classes=classes)
  np.testing.assert_array_equal(domain.inputs, images)
  assert domain.labels.tolist() == [1, 0, 1]
  assert domain.classes == ('mug', 'pen')
  named = save(path, images=images, labels=np.asarray(['pen', 'mug', 'pen']))
  assert (named.labels.tolist(), named.classes) == ([1, 0, 1], ('mug', 'pen'))
  numbered = save(path, images=images, labels=np.asarray([7, 3, 7]))
  assert (numbered.labels.tolist(), numbered.classes) == ([1, 0, 1], ('3', '7'))
  assert save(path, images=images).labels is None


GOOD = np.zeros((2, 8, 8, 3), np.uint8)


@pytest.mark.parametrize(
  ('arrays', 'message'),
  [
    ({'pictures': GOOD}, "must hold 'images'"),
    ({'features': GOOD}, r'shape \(2, 8, 8, 3\)'),
    ({'images': GOOD[0, 0]}, r'shape \(8, 3\)'),
    ({'images': GOOD.astype(np.int16)}, 'type int16'),
    ({'images': GOOD + 1.5}, r'0\.\.1'),
    ({'images': np.full((2, 8, 8), np.nan)}, r'0\.\.1'),
    ({'images': GOOD, 'labels': np.zeros(3, int)}, r'shape \(3,\) for 2'),
    ({'images': GOOD, 'labels': np.zeros(2)}, 'type float64'),
    (
      {'images': GOOD, 'labels': np.asarray([-1, 0])},
      r'1 labels are negative, such as -1\. .*labels\.astype\(str\)',
    ),
    ({'images': GOOD[:0]}, 'at least one image'),
    ({'images': np.zeros((0, 8, 8))}, 'at least one image'),
    ({'images': GOOD[:, :0, :0]}, 'at least one pixel'),
    (
      {'images': GOOD, 'labels': np.zeros(2, int), 'classes': np.asarray('x')},
      r'classes of shape \(\)',
    ),
    (
      {'images': GOOD, 'labels': np.zeros(2, int), 'classes': [['x'], ['y']]},
      r'classes of shape \(2, 1\)',
    ),
    (
      {'images': GOOD, 'labels': np.asarray([0, 5]), 'classes': ['x', 'y']},
      'like 5 for 2 classes',
    ),
  ],
)
def test_wrong_arrays_are_refused(tmp_path, arrays, message):
  with pytest.raises(UserError, match=message):
    save(tmp_path / 'd.npz', **arrays)


def test_a_pickle_in_an_array_is_refused(tmp_path):
  objects = np.asarray([pathlib.Path('x'), None], object)
  with pytest.raises(UserError, match='object'):
    save(tmp_path / 'd.npz', images=GOOD, labels=objects)


def test_a_file_is_read_once_for_what_tells_it_apart(tmp_path):
  make_tree(tmp_path)
  files = sorted(tmp_path.rglob('*.png'))
  pictures = PictureFiles(files, tmp_path)
  before = pictures.digest(range(len(files)))
  files[0].unlink()
  assert pictures[[0]].digest(range(1)) == before[:1]
