"""SynthDigits: the original's layout, and the regenerated set."""

import hashlib
import io
import subprocess
import sys

import made_up_files
import numpy as np
import pytest
from PIL import Image

from moda_jax.datasets import font_digits, manual
from moda_jax.datasets.synth_digits import draw, regenerated
from moda_jax.errors import UserError


@pytest.mark.parametrize('folder', ['synth_digits', 'synth', '.'])
def test_every_layout_of_the_original(tmp_path, folder):
  truth = {}
  for split, count in (('train', 20), ('test', 10)):
    path = tmp_path / folder / f'synth_{split}_32x32.mat'
    labels = np.arange(count) % 10
    images = made_up_files.write_mat_digits(path, count, labels)
    truth[split] = {
      image.tobytes(): label
      for image, label in zip(images, labels, strict=True)
    }
  data_dir = tmp_path / 'data'
  builder = made_up_files.build('synth_digits/original', tmp_path, data_dir)
  for split, labels in truth.items():
    examples = made_up_files.examples(builder, split)
    assert len(examples) == len(labels)
    for example in examples:
      assert labels[example['image'].tobytes()] == example['label']


def test_svhns_ten_is_out_of_range_here(tmp_path):
  for split in ('train', 'test'):
    path = tmp_path / f'synth_{split}_32x32.mat'
    made_up_files.write_mat_digits(path, 3, [1, 10, 2])
  with pytest.raises(UserError, match='allowed are 0 to 9'):
    made_up_files.build('synth_digits/original', tmp_path, tmp_path / 'data')
  assert not made_up_files.leftovers(tmp_path / 'data')


def test_a_missing_original_points_to_the_regenerated_set(tmp_path):
  (tmp_path / 'other').touch()
  with pytest.raises(manual.MissingFile, match='synth_digits/regenerated'):
    made_up_files.build('synth_digits/original', tmp_path, tmp_path / 'data')


def _decode(png):
  return np.asarray(Image.open(io.BytesIO(png)))


@pytest.mark.parametrize('processes', [1, 2, 3])
def test_regenerated_is_the_same_in_any_number_of_processes(processes):
  examples = list(regenerated.generate('test', 25, processes))
  assert [key for key, _ in examples] == [f'{i:06d}' for i in range(25)]
  for index, (_, example) in enumerate(examples):
    assert example['label'] == index % 10
    assert np.array_equal(_decode(example['image']), draw.draw('test', index))


def test_regenerated_is_built_by_tfds_without_any_file(tmp_path, monkeypatch):
  monkeypatch.setattr(regenerated, 'COUNTS', {'train': 40, 'test': 20})
  builder = made_up_files.build(
    'synth_digits/regenerated', tmp_path / 'none', tmp_path / 'data'
  )
  examples = made_up_files.examples(builder, 'train')
  labels = np.bincount([example['label'] for example in examples])
  assert labels.tolist() == [4] * 10
  assert examples[0]['image'].shape == (32, 32, 3)
  assert 'REGENERATED, not the original' in builder.info.description


def test_the_published_sizes():
  assert regenerated.COUNTS == {'train': 50_000, 'test': 10_000}


def test_pictures_and_splits_differ():
  pictures = {
    draw.draw(split, index).tobytes()
    for split in ('train', 'test')
    for index in range(200)
  }
  assert len(pictures) == 400


def test_a_generator_given_up_ends_its_processes():
  examples = regenerated.generate('train', 50_000, 2)
  next(examples)
  workers = examples.gi_frame.f_locals['workers']
  assert all(worker.poll() is None for worker in workers)
  examples.close()
  assert all(worker.poll() is not None for worker in workers)


def test_a_process_ends_when_nobody_reads():
  """As when the process that started it is killed."""
  program = f'import {draw.__name__} as draw; draw.main()'
  worker = subprocess.Popen(
    [sys.executable, '-c', program, 'train', '0', '1000000', '1'],
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    cwd=made_up_files.ROOT,
  )
  worker.stdout.read(4)
  worker.stdout.close()
  assert worker.stderr.read() == b''
  worker.stderr.close()
  assert worker.wait(timeout=60) == 1


def test_a_process_that_dies_is_noticed(monkeypatch):
  monkeypatch.setattr(draw, '__name__', 'moda_jax.no_such_module')
  with pytest.raises(RuntimeError, match='ended early'):
    list(regenerated.generate('train', 10, 2))


@pytest.mark.parametrize('digit', range(10))
def test_the_label_is_the_digit_in_the_centre(digit):
  """Neighbours change the sides of a picture and not its centre."""
  number = font_digits.choose_number(np.random.RandomState(0), digit)._replace(
    left='', right='', font='DejaVuSans', height=24.0, shift=(0.0, 0.0),
    angle=0.0, background=(0, 0, 0), fill=(255, 255, 255), outline_width=0.0,
    blur=0.0,
  )  # fmt: skip
  alone = font_digits.print_number(number)
  flanked = font_digits.print_number(number._replace(left='1', right='7'))
  rows, columns = np.nonzero(alone[..., 0])
  assert abs((columns.min() + columns.max()) / 2 - 15.5) <= 1
  assert abs((rows.min() + rows.max()) / 2 - 15.5) <= 1
  centre = slice(columns.min(), columns.max() + 1)
  assert np.array_equal(alone[:, centre], flanked[:, centre])
  assert flanked[:, :7].max() == flanked[:, -7:].max() == 255


def test_numbers_have_one_to_three_digits_and_enough_contrast():
  lengths = []
  for seed in range(300):
    number = font_digits.choose_number(np.random.RandomState(seed), seed % 10)
    lengths.append(len(number.left) + 1 + len(number.right))
    weights = (0.299, 0.587, 0.114)
    contrast = np.dot(weights, np.subtract(number.fill, number.background))
    assert abs(contrast) >= 60
    assert number.font in font_digits.FONTS
  assert set(lengths) == {1, 2, 3}


@pytest.mark.parametrize('font', font_digits.FONTS)
def test_every_font_draws_ten_different_digits(font):
  glyphs = set()
  for digit in range(10):
    mask = font_digits.load_font(font, 40).getmask(str(digit))
    assert mask.getbbox() is not None
    glyphs.add((mask.size, hashlib.sha256(bytes(mask)).digest()))
  assert len(glyphs) == 10
