"""Pictures of unknown origin against Pillow itself."""

import concurrent.futures
import io
import struct
import threading
import warnings
import zlib

import made_up_files
import numpy as np
import pytest
from PIL import Image

from moda_jax.errors import UserError
from moda_jax.files import images


def _save(image, kind, **options):
  content = io.BytesIO()
  image.save(content, kind, **options)
  return content.getvalue()


@pytest.mark.parametrize('kind', ['PNG', 'JPEG', 'BMP', 'WEBP', 'TIFF'])
def test_rgb_files_give_pillows_pixels(kind):
  data = made_up_files.encode(made_up_files.random_image(0, (9, 7, 3)), kind)
  expected = np.asarray(Image.open(io.BytesIO(data)).convert('RGB'))
  decoded = images.decode(data, 'x')
  assert (decoded.format, decoded.size) == (kind, (7, 9))
  assert np.array_equal(np.asarray(images.to_rgb(decoded)), expected)


@pytest.mark.parametrize('mode', ['1', 'L', 'LA', 'P', 'RGBA', 'CMYK'])
def test_other_modes_become_rgb(mode):
  colour = Image.new('RGB', (5, 5), (200, 200, 200))
  data = _save(colour.convert(mode), 'JPEG' if mode == 'CMYK' else 'PNG')
  rgb = np.asarray(images.to_rgb(images.decode(data, 'x')))
  assert rgb.shape == (5, 5, 3)
  # Black and white dithers 200 to 255 and 0; the others keep the grey.
  tolerance = 256 if mode == '1' else 10
  assert np.abs(rgb.astype(int) - 200).max() < tolerance


def test_16_bits_are_scaled_to_8():
  values = np.array([[0, 255, 256, 25_700, 65_279, 65_535]], np.uint16)
  for data in (
    made_up_files.encode(values),
    _save(Image.fromarray(values), 'TIFF'),
  ):
    rgb = np.asarray(images.to_rgb(images.decode(data, 'x')))
    assert rgb.tolist() == [[[v] * 3 for v in (0, 0, 1, 100, 254, 255)]]


def test_16_bits_of_grey_are_read_as_those_of_colour():
  values = np.random.RandomState(0).randint(0, 2**16, (5, 6)).astype('>u2')
  grey, colour = (
    images.to_rgb(images.decode(_png(6, 5, 16, kind, channels), 'x'))
    for kind, channels in (
      (0, values),
      (2, np.stack([values] * 3, -1, dtype='>u2')),
    )
  )
  assert np.array_equal(np.asarray(grey), np.asarray(colour))


@pytest.mark.parametrize('kind', ['PNG', 'JPEG', 'WEBP'])
@pytest.mark.parametrize(
  ('orientation', 'turned'),
  [
    (1, lambda pixels: pixels),
    (2, lambda pixels: pixels[:, ::-1]),
    (3, lambda pixels: pixels[::-1, ::-1]),
    (6, lambda pixels: np.rot90(pixels, -1)),
    (8, np.rot90),
    (99, lambda pixels: pixels),
  ],
)
def test_a_photograph_is_turned_as_its_camera_was(kind, orientation, turned):
  pixels = made_up_files.random_image(0, (9, 7, 3))
  exif = Image.Exif()
  exif[0x0112] = orientation
  data = made_up_files.encode(pixels, kind, exif=exif)
  plain = np.asarray(images.to_rgb(images.decode(data, 'x')))
  upright = images.turn_upright(images.decode(data, 'x'))
  assert np.array_equal(np.asarray(images.to_rgb(upright)), turned(plain))


def test_broken_metadata_turn_nothing():
  pixels = made_up_files.random_image(0, (9, 7, 3))
  for exif in (
    b'Exif\0\0',
    b'Exif\0\0II*\0\xff',
    b'Exif\0\0MM\0*' + b'\xff' * 9,
  ):
    data = made_up_files.encode(pixels, exif=exif)
    upright = images.turn_upright(images.decode(data, 'x'))
    assert np.array_equal(np.asarray(upright), pixels)


def test_a_palette_with_transparency_raises_no_warning():
  palette = Image.new('P', (4, 4), 1)
  palette.putpalette([0, 0, 0, 10, 20, 30])
  data = _save(palette, 'PNG', transparency=bytes([0, 128]))
  rgb = np.asarray(images.to_rgb(images.decode(data, 'x')))
  assert (rgb == (10, 20, 30)).all()


def test_decoding_in_threads_silences_pillow_alone(monkeypatch):
  data = made_up_files.encode(made_up_files.random_image(0, (9, 7, 3)))
  met, open_ = threading.Barrier(2), Image.open

  def open_late(*args, **kwargs):
    met.wait(60)
    warnings.warn_explicit('odd', UserWarning, 'x.py', 1, 'PIL.Image')
    return open_(*args, **kwargs)

  monkeypatch.setattr(Image, 'open', open_late)
  with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter('always')
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
      list(pool.map(lambda name: images.decode(data, name), 'ab'))
      assert not caught
      before = pool.submit(images.decode, data, 'c')
      warnings.warn('of the caller', stacklevel=1)
      images.decode(data, 'd')
      before.result()
    warnings.warn('of the caller', stacklevel=1)
  assert [str(w.message) for w in caught] == 2 * ['of the caller']


def test_pictures_of_colour_are_not_copied():
  pixels = made_up_files.random_image(0, (9, 7, 3))
  image = images.decode(made_up_files.encode(pixels), 'x')
  assert images.to_rgb(image) is image


@pytest.mark.parametrize('kind', ['PNG', 'JPEG', 'BMP', 'WEBP'])
def test_truncated_files_are_refused_by_name(kind):
  data = made_up_files.encode(made_up_files.random_image(0, (64, 64, 3)), kind)
  for length in (0, 10, len(data) // 2, len(data) - 600):
    with pytest.raises(images.UnreadableImage, match=r'folder/x\.png'):
      images.decode(data[:length], 'folder/x.png')


@pytest.mark.parametrize(
  'data',
  [
    b'plain text',
    b'\x80\x04\x95',  # a pickle
    _save(Image.new('RGB', (4, 4)), 'GIF'),
  ],
)
def test_other_files_are_refused(data):
  with pytest.raises(images.UnreadableImage):
    images.decode(data, 'x.png')


def _png(width, height, bits, colour, rows):
  """Returns a PNG of these rows, which need not be as many as it claims."""
  header = struct.pack('>IIBBBBB', width, height, bits, colour, 0, 0, 0)
  data = b''.join(b'\0' + row.tobytes() for row in rows)  # each has a filter
  chunks = b''
  for kind, content in (
    (b'IHDR', header),
    (b'IDAT', zlib.compress(data)),
    (b'IEND', b''),
  ):
    check = struct.pack('>I', zlib.crc32(kind + content))
    chunks += struct.pack('>I', len(content)) + kind + content + check
  return b'\x89PNG\r\n\x1a\n' + chunks


@pytest.mark.parametrize('side', [8_000, 100_000])
def test_a_picture_of_too_many_pixels_is_not_unpacked(side):
  with pytest.raises(images.UnreadableImage, match=r'x\.png'):
    images.decode(_png(side, side, 8, 2, []), 'x.png')


def test_the_limit_is_on_pixels(monkeypatch):
  data = made_up_files.encode(made_up_files.random_image(0, (8, 8, 3)))
  monkeypatch.setattr(images, 'MAX_PIXELS', 64)
  images.decode(data, 'x')
  monkeypatch.setattr(images, 'MAX_PIXELS', 63)
  with pytest.raises(images.UnreadableImage, match='8×8 is over 63'):
    images.decode(data, 'x')


def _photograph(height, width, orientation=1):
  """Returns a JPEG of smooth colours with some noise, as cameras make."""
  rng = np.random.RandomState(0)
  coarse = rng.randint(0, 256, (height // 25, width // 25, 3), np.uint8)
  smooth = Image.fromarray(coarse).resize((width, height), Image.BICUBIC)
  pixels = np.asarray(smooth) + rng.normal(0, 4, (height, width, 3))
  picture = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
  exif = Image.Exif()
  exif[0x0112] = orientation
  return _save(picture, 'JPEG', quality=90, exif=exif)


@pytest.mark.parametrize(('height', 'width'), [(400, 500), (375, 501)])
@pytest.mark.parametrize('orientation', [1, 6])
@pytest.mark.parametrize('size', [134, 80, 60, 30])
def test_large_jpegs_become_what_resizing_all_of_them_gives(
  height, width, orientation, size
):
  data = _photograph(height, width, orientation)
  whole = images.turn_upright(images.decode(data, 'x'))
  assert sorted(whole.size) == [height, width]
  part = images.turn_upright(images.decode(data, 'x', size))
  resized = [
    np.asarray(image.resize((size, size), Image.Resampling.BILINEAR), float)
    for image in (part, whole)
  ]
  assert np.abs(resized[0] - resized[1]).mean() < 1.5
  # What is left to decode is never less than half as large again.
  assert part.size == ((size, size) if 2 * 1.5 * size <= height else whole.size)


def test_other_files_are_decoded_in_full():
  data = _save(Image.open(io.BytesIO(_photograph(400, 500))), 'PNG')
  assert images.decode(data, 'x', 30).size == (500, 400)


@pytest.mark.parametrize('share', [0.1, 0.5, 0.9])
def test_a_truncated_jpeg_is_refused_at_any_size(share):
  data = _photograph(400, 500)
  with pytest.raises(images.UnreadableImage):
    images.decode(data[: int(share * len(data))], 'x', 30)


def test_names():
  assert images.is_image_name('a/b/X.JPG')
  assert images.is_image_name('x.webp')
  assert not images.is_image_name('a/._x.jpg')
  assert not images.is_image_name('__MACOSX/a/x.jpg')
  assert not images.is_image_name('Thumbs.db')


def test_all_unreadable_files_are_counted_and_ten_named():
  images.refuse_unreadable([], 5, 'here')
  errors = [f'file{i}' for i in range(12)]
  with pytest.raises(UserError, match='12 of 50 files of here') as caught:
    images.refuse_unreadable(errors, 50, 'here')
  assert 'file9' in str(caught.value)
  assert 'file10' not in str(caught.value)
  assert '2 more' in str(caught.value)
