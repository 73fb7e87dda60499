"""Pictures on disk are read to the bits that memory would hold."""

import io
import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow_datasets as tfds
from PIL import Image

import moda_jax
from moda_jax.data import memory
from moda_jax.data.batches import make_batch_fn, make_batches
from moda_jax.data.domains import Domain, Domains
from moda_jax.data.load import load_domains
from moda_jax.data.recorded_pictures import RecordedPictures
from moda_jax.data.spec import BatchSpec
from moda_jax.data.streamed import StreamedPictures
from moda_jax.errors import UserError

RNG = np.random.default_rng(0)
SPEC = BatchSpec(sources=True, target_views=('weak', 'strong'))


def random_picture(height, width):
  return Image.fromarray(RNG.integers(0, 256, (height, width, 3), np.uint8))


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  root = tmp_path_factory.mktemp('pictures')
  for domain in ('a', 'b', 't'):
    for label in ('cat', 'dog'):
      (root / domain / label).mkdir(parents=True)
      for i in range(5):
        file = root / domain / label / f'{i}.jpg'
        random_picture(30 + 5 * i, 40).save(file)
  return root


def load(folder, **values):
  values |= {'network': 'digits', 'image_size': 32, 'batch_size': 3}
  pairs = ''.join(f',{key}={value}' for key, value in values.items())
  config = moda_jax.get_config(f'folder:{folder},target=t{pairs}')
  return config, load_domains(config)


def list_domains(domains):
  return (*domains.sources, domains.target, domains.test)


@pytest.mark.parametrize('samples', [0, 4])
def test_streaming_gives_the_bits_of_memory(folder, samples):
  batches = []
  for choice in ('yes', 'no'):
    config, domains = load(folder, memory=choice, samples=samples)
    kinds = {type(d.inputs) for d in list_domains(domains)}
    assert kinds == {np.ndarray if choice == 'yes' else StreamedPictures}
    batches.append(
      list(make_batches(make_batch_fn(domains, SPEC, config), 3, 9))
    )
  for held, streamed in zip(*batches, strict=True):
    assert held['source'].keys() == streamed['source'].keys()
    for part in held:
      for key, array in held[part].items():
        np.testing.assert_array_equal(array, streamed[part][key])


def test_streamed_pictures_are_indexed_like_an_array(folder):
  arrays = load(folder, memory='yes')[1].target
  pictures = load(folder, memory='no')[1].target
  assert pictures.inputs.shape == arrays.inputs.shape
  some = np.array([7, 0, 7])
  for key in (3, -1, slice(2, 5), slice(20, 30), some):
    np.testing.assert_array_equal(pictures.inputs[key], arrays.inputs[key])
  taken, there = pictures.take(some), arrays.take(some)
  assert isinstance(taken.inputs, StreamedPictures)
  np.testing.assert_array_equal(taken.inputs[:], there.inputs)
  np.testing.assert_array_equal(taken.labels, there.labels)
  assert taken.examples == there.examples


@pytest.mark.parametrize(('free', 'streams'), [(10**9, False), (10**5, True)])
def test_pictures_are_held_where_they_fit(folder, monkeypatch, free, streams):
  monkeypatch.setattr(memory, 'free_memory', lambda: free)
  inputs = load(folder)[1].target.inputs
  assert isinstance(inputs, StreamedPictures) == streams


def test_a_picture_that_breaks_while_training_is_named(folder, tmp_path):
  config, domains = load(folder, memory='no')
  file = folder / 't' / 'dog' / '2.jpg'
  content = file.read_bytes()
  file.write_bytes(content[:90])
  try:
    with pytest.raises(UserError, match=r'(?s)1 of 10 files.*dog/2\.jpg'):
      list(make_batches(make_batch_fn(domains, SPEC, config), 0, 20))
  finally:
    file.write_bytes(content)


SCRIPT = """
import sys
import moda_jax
from moda_jax.data import batches, load, spec

config = moda_jax.get_config(sys.argv[1])
domains = load.load_domains(config)
needed = spec.BatchSpec(sources=True, target_views=('weak',))
batch_fn = batches.make_batch_fn(domains, needed, config)
made = batches.make_batches(batch_fn, 0, 10**9)
next(made)
raise KeyError('an error of the caller')
"""


@pytest.mark.slow
def test_a_script_that_fails_while_reading_ends(folder):
  values = 'target=t,network=digits,image_size=32,batch_size=50,memory=no'
  ended = subprocess.run(
    [sys.executable, '-c', SCRIPT, f'folder:{folder},{values}'],
    capture_output=True,
    text=True,
    timeout=300,
  )
  assert ended.returncode == 1
  assert ended.stderr.endswith("KeyError: 'an error of the caller'\n")


def test_memory_that_is_free_is_some_of_what_there_is():
  whole = os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
  assert 0 < memory.free_memory() <= whole


def test_an_array_is_held_once():
  images = RNG.integers(0, 256, (9, 32, 32, 3), np.uint8)
  domain = Domain('a', '', images, np.zeros(9, np.int32), ('x',))
  run = Domains((domain,), domain, domain)
  first, second = memory.hold_once([run, run])
  held = first.target.inputs
  assert first.sources[0].inputs is held
  assert second.test.inputs is held
  np.testing.assert_array_equal(held, images)
  tensor = memory.as_tensor(held)
  held[4] = 17
  np.testing.assert_array_equal(tensor[4], np.full((32, 32, 3), 17))
  read_only = np.array(held)
  read_only.flags.writeable = False
  np.testing.assert_array_equal(memory.as_tensor(read_only), held)


class Drawn(tfds.core.GeneratorBasedBuilder):
  """Pictures without loss, of several sizes."""

  VERSION = tfds.core.Version('1.0.0')
  pkg_dir_path = None

  def _info(self):
    image = tfds.features.Image(shape=(None, None, 3), encoding_format='png')
    label = tfds.features.ClassLabel(names=['x', 'y', 'z'])
    features = tfds.features.FeaturesDict({'image': image, 'label': label})
    return tfds.core.DatasetInfo(builder=self, features=features)

  def _split_generators(self, dl_manager):
    del dl_manager
    return {'train': self._generate_examples()}

  def _generate_examples(self):
    rng = np.random.default_rng(3)
    for i in range(12):
      pixels = rng.integers(0, 256, (20 + i, 25, 3), np.uint8)
      file = io.BytesIO()
      Image.fromarray(pixels).save(file, 'PNG')
      file.seek(0)
      yield i, {'image': file, 'label': i % 3}


def test_records_are_read_by_index_as_tfds_reads_them(tmp_path):
  builder = Drawn(data_dir=str(tmp_path), file_format='array_record')
  builder.download_and_prepare()
  there = builder.as_data_source(split='train')
  pictures = RecordedPictures(builder, 'train', 'drawn')
  labels = [example['label'] for example in there]
  found = [pictures._open(i, 0) for i in range(len(pictures))]
  np.testing.assert_array_equal(pictures.read_labels(), labels)
  for example, image in zip(there, found, strict=True):
    np.testing.assert_array_equal(example['image'], image)
  assert pictures.sides([2]) == [min(found[2].shape[:2])]
  some = pictures[[5, 1]]
  np.testing.assert_array_equal(some.read_labels(), [labels[5], labels[1]])
  np.testing.assert_array_equal(
    some.read([1, 0], 16), pictures.read([1, 5], 16)
  )


class BrokenDrawing(Drawn):
  """The same, of which one is no picture."""

  def _generate_examples(self):
    for i, example in super()._generate_examples():
      if i == 4:
        example['image'] = io.BytesIO(b'not a picture')
      yield i, example


def test_a_record_that_holds_no_picture_is_named(tmp_path):
  builder = BrokenDrawing(data_dir=str(tmp_path), file_format='array_record')
  builder.download_and_prepare()
  pictures = RecordedPictures(builder, 'train', 'drawn')
  places = range(len(pictures))
  assert len(pictures.sides(places)) == len(pictures) - 1
  message = (
    'broken_drawing/1.0.0 is damaged or holds a picture that is not read: '
    r'example \d+ of train \(not a picture of .*\)\nDelete its folder, '
  )
  with pytest.raises(UserError, match=message):
    pictures.read(places, 16)


def test_records_that_cannot_be_read_have_no_sides(tmp_path):
  builder = Drawn(data_dir=str(tmp_path), file_format='array_record')
  builder.download_and_prepare()
  (file,) = tmp_path.rglob('*.array_record-*')
  file.unlink()
  pictures = RecordedPictures(builder, 'train', 'drawn')
  assert pictures.sides(range(len(pictures))) == []
