import shutil

import numpy as np
import pytest
import tensorflow_datasets as tfds
import tiny

from configs import mini
from moda_jax.data import images, read_tfds
from moda_jax.data.load import load_domains
from moda_jax.datasets import preparation
from moda_jax.errors import UserError
from moda_jax.training import loop as train


def load(data_dir, argument='mnistm', **values):
  config = mini.get_config(argument)
  config.data.data_dir = str(data_dir)
  tiny.set_values(config, **values)
  return load_domains(config)


def test_domains_come_from_their_splits(mini_data_dir):
  loaded = load(mini_data_dir)
  assert [d.name for d in loaded.sources] == ['mnist', 'uci', 'synth']
  assert loaded.target.origin == 'mini_digits/mnistm/1.0.0'
  for domain, split in ((loaded.target, 'train'), (loaded.test, 'test')):
    expected = tfds.as_numpy(
      tfds.load('mini_digits/mnistm', split=split, data_dir=mini_data_dir)
    )
    for example, image, label in zip(
      expected, domain.inputs, domain.labels, strict=True
    ):
      np.testing.assert_array_equal(image, example['image'])
      assert label == example['label']


def test_a_subset_is_drawn_by_seed(mini_data_dir):
  def draw(seed):
    return load(mini_data_dir, samples=100, seed=seed).target.inputs

  drawn = draw(0)
  assert drawn.shape == (100, 32, 32, 3)
  np.testing.assert_array_equal(drawn, draw(0))
  assert (drawn != draw(1)).any()
  whole = load(mini_data_dir).target.inputs
  rows = {image.tobytes() for image in whole}
  assert len({image.tobytes() for image in drawn} & rows) == 100


def test_the_test_split_is_never_cut(mini_data_dir):
  assert len(load(mini_data_dir, samples=100).test.labels) == 1000


def test_the_first_prepared_data_set_serves(mini_data_dir):
  candidates = {'uci': 'mnist_idx,mini_digits/uci'}
  config = mini.get_config('mnistm')
  config.data.data_dir = str(mini_data_dir)
  config.data.datasets.update(candidates)
  loaded = load_domains(config)
  assert loaded.sources[1].origin == 'mini_digits/uci/1.0.0'


def test_mnist_of_tfds_is_padded_and_coloured():
  grey = np.random.default_rng(0).integers(0, 256, (2, 28, 28, 1), np.uint8)
  made = images.to_rgb(images.pad_mnist(grey))
  assert made.shape == (2, 32, 32, 3)
  for channel in range(3):
    np.testing.assert_array_equal(made[:, 2:30, 2:30, channel], grey[..., 0])
  assert made.sum() == 3 * grey.sum(dtype=int)


def test_unprepared_data_is_refused_with_the_way_to_prepare_it(tmp_path):
  values = {'datasets': {'uci': 'mnist_m/original'}, 'data_dir': str(tmp_path)}
  config = mini.get_config('uci')
  config.data.update(values)
  with pytest.raises(UserError) as error:
    read_tfds.prepared_builder(config, 'uci')
  for text in ("'uci'", 'mnist_m/original', str(tmp_path), 'moda_jax.prepare'):
    assert text in str(error.value)


def _damage(data_dir, domain, damage):
  """Damages the training examples of a data set; returns its folder."""
  folder = data_dir / 'mini_digits' / domain / '1.0.0'
  (file,) = folder.glob('*train.tfrecord*')
  content = file.read_bytes()
  if damage == 'gone':
    file.unlink()
  else:
    file.write_bytes(
      {
        'cut': content[:-9],
        'empty': b'',
        'flipped': content[:99] + bytes(9) + content[108:],
      }[damage]
    )
  return folder


@pytest.mark.parametrize('damage', ['gone', 'cut', 'empty', 'flipped'])
def test_a_damaged_data_set_is_named_with_the_way_to_make_it_anew(
  mini_data_dir, tmp_path, damage
):
  config = mini.get_config('mnist')
  config.data.data_dir = str(tmp_path)
  part = 'mini_digits/uci'
  shutil.copytree(mini_data_dir / part, tmp_path / part)
  folder = _damage(tmp_path, 'uci', damage)
  with pytest.raises(UserError) as error:
    read_tfds.read_tfds(config, 'uci', 'train')
  for text in (
    'mini_digits/uci/1.0.0 is damaged: ',
    f'Delete its folder, {folder}, ',
    'python -m moda_jax.prepare mini ',
  ):
    assert text in str(error.value)
  assert '[Op:' not in str(error.value)


def test_damaged_records_of_one_size_are_named(tmp_path):
  config = mini.get_config('mnist')
  config.data.data_dir = str(tmp_path)
  builder = tfds.builder(
    'mini_digits/uci', data_dir=tmp_path, file_format='array_record'
  )
  preparation.make(builder)
  assert read_tfds.read_tfds(config, 'uci', 'train').size
  (file,) = tmp_path.rglob('*-train.array_record-*')
  file.write_bytes(file.read_bytes()[:-9])
  with pytest.raises(UserError, match=r'uci/1\.0\.0 is damaged: example 0 of'):
    read_tfds.read_tfds(config, 'uci', 'train')


def test_domains_of_other_classes_are_refused(tmp_path):
  data = tiny.make_domains()
  classes = ('other', 'names', 'here')
  broken = data._replace(target=data.target._replace(classes=classes))
  with pytest.raises(UserError, match='other'):
    train.train(tiny.make_run_config(), tmp_path, broken, devices=1)


def test_what_was_not_drawn_is_the_rest(tmp_path):
  config = make_arrays(tmp_path, evaluate_on='undrawn', samples=5)
  loaded = load_domains(config)
  drawn = {image.tobytes() for image in loaded.target.inputs}
  rest = {image.tobytes() for image in loaded.test.inputs}
  assert (len(drawn), len(rest), len(drawn & rest)) == (5, 7, 0)
  assert [d.size for d in loaded.sources] == [5]


def test_the_target_may_be_evaluated_on_itself(tmp_path):
  loaded = load_domains(make_arrays(tmp_path, evaluate_on='target'))
  assert loaded.test is loaded.target
  assert loaded.target.size == 12


@pytest.mark.parametrize(
  ('values', 'message'),
  [
    ({'evaluate_on': 'test_split'}, "config.data.evaluate_on = 'test_split'"),
    ({'evaluate_on': 'undrawn'}, 'config.data.samples = 0'),
    ({'evaluate_on': 'undrawn', 'samples': 12}, 'config.data.samples = 12'),
  ],
)
def test_a_test_set_that_is_not_there_is_refused(tmp_path, values, message):
  with pytest.raises(UserError, match=message):
    load_domains(make_arrays(tmp_path, **values))


def make_arrays(tmp_path, **values):
  """Returns a config of two domains in `.npz` files, 12 random images each."""
  rng = np.random.default_rng(0)
  for name in ('a', 't'):
    images = rng.integers(0, 256, (12, 8, 8, 3), np.uint8)
    labels = np.arange(12) % 3
    np.savez(tmp_path / f'{name}.npz', images=images, labels=labels)
  config = tiny.make_run_config(sources=('a',), **values)
  for name in ('a', 't'):
    config.data.datasets[name] = f'npz:{tmp_path / name}.npz'
  return config


def test_a_split_that_is_not_there_is_refused(mini_data_dir):
  config = mini.get_config('mnist')
  config.data.data_dir = str(mini_data_dir)
  with pytest.raises(UserError, match="no split 'validation'"):
    read_tfds.read_tfds(config, 'uci', 'validation')


@pytest.mark.parametrize('content', [b'', b'{"name": "mini', bytes(range(256))])
def test_a_damaged_description_is_named(mini_data_dir, tmp_path, content):
  part = 'mini_digits/uci'
  shutil.copytree(mini_data_dir / part, tmp_path / part)
  (file,) = (tmp_path / part).rglob('dataset_info.json')
  file.write_bytes(content)
  config = mini.get_config('mnist')
  config.data.data_dir = str(tmp_path)
  message = f'dataset_info.json of {part} is damaged: .*{tmp_path / part}, and'
  with pytest.raises(UserError, match=message):
    read_tfds.prepared_builder(config, 'uci')
  candidates = preparation.GROUPS['mini']['uci']
  outcome = preparation.prepare_domain(
    'uci', candidates, tmp_path, str(tmp_path)
  )
  assert outcome.status == 'refused'
  assert 'is damaged' in outcome.problem
  assert file.read_bytes() == content


def test_a_mistyped_place_is_refused_and_not_made(tmp_path, monkeypatch):
  config = mini.get_config('mnist')
  config.data.data_dir = str(tmp_path / 'mistyped')
  with pytest.raises(UserError, match=r'data_dir=.*mistyped is not a folder'):
    read_tfds.prepared_builder(config, 'uci')
  config.data.data_dir = ''
  monkeypatch.setenv('TFDS_DATA_DIR', str(tmp_path / 'wrong' / 'place'))
  with pytest.raises(UserError, match=r'TFDS_DATA_DIR=.*place is not a f'):
    read_tfds.prepared_builder(config, 'uci')
  assert list(tmp_path.iterdir()) == []


def test_a_version_that_is_not_there_is_refused(tmp_path):
  config = mini.get_config('mnist')
  config.data.datasets.uci = 'mini_digits/uci:9.9.9'
  config.data.data_dir = str(tmp_path)
  with pytest.raises(UserError, match=r'mini_digits/uci:9\.9\.9'):
    read_tfds.prepared_builder(config, 'uci')
