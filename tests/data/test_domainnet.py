"""DomainNet, as TFDS's own builder prepares it, is read from disk."""

import shutil

import jax
import numpy as np
import pytest
import tiny
from tensorflow_datasets.core.utils import tqdm_utils

import moda_jax
from experiments.benchmark import made_up_pictures
from moda_jax.data import read_tfds
from moda_jax.data.batches import make_batch_fn, make_batches
from moda_jax.data.load import load_domains
from moda_jax.data.spec import BatchSpec
from moda_jax.data.streamed import StreamedPictures
from moda_jax.errors import UserError
from moda_jax.training import loop

SPEC = BatchSpec(sources=True, target_views=('weak', 'strong'))
PICTURES = 80
*SOURCES, TARGET = made_up_pictures.DOMAINS


@pytest.fixture(scope='module')
def data_dir(tmp_path_factory):
  folder = tmp_path_factory.mktemp('domainnet')
  made_up_pictures.write_pictures(folder / 'pictures', PICTURES, different=5)
  (folder / 'tfds').mkdir()
  shows_bars = tqdm_utils._active
  made_up_pictures.prepare_domainnet(
    folder / 'pictures', PICTURES, folder / 'tfds'
  )
  assert tqdm_utils._active == shows_bars
  return folder / 'tfds'


def make_config(data_dir, memory, network='digits'):
  values = f'network={network},image_size=32,batch_size=3,memory={memory}'
  config = moda_jax.get_config(
    f'domainnet:{TARGET},data_dir={data_dir},{values}'
  )
  config.data.sources = tuple(SOURCES)
  return config


def load(data_dir, memory):
  config = make_config(data_dir, memory)
  return config, load_domains(config)


def test_records_of_domainnet_give_the_bits_of_memory(data_dir):
  batches = []
  for memory, kind in (('yes', np.ndarray), ('no', StreamedPictures)):
    config, domains = load(data_dir, memory)
    read = (*domains.sources, domains.target, domains.test)
    assert {type(domain.inputs) for domain in read} == {kind}
    assert [domain.size for domain in read] == [18, 18, 18, 18, 2]
    assert len(domains.target.classes) == 345
    made = make_batches(make_batch_fn(domains, SPEC, config), 0, 4)
    batches.append(list(made))
  for held, streamed in zip(*batches, strict=True):
    for part in held:
      for key, array in held[part].items():
        np.testing.assert_array_equal(array, streamed[part][key])


def copy(data_dir, tmp_path):
  """Returns a copy, and the target's folder and training examples in it."""
  copied = tmp_path / 'tfds'
  shutil.copytree(data_dir, copied)
  folder = copied / 'domainnet' / TARGET / '1.0.0'
  (file,) = folder.glob('*-train.array_record-*')
  return copied, folder, file


def flip_a_bit(file):
  content = bytearray(file.read_bytes())
  content[len(content) // 3] ^= 4
  file.write_bytes(content)


def cut(file):
  file.write_bytes(file.read_bytes()[:-9])


def remove(file):
  file.unlink()


def assert_names_the_damage(error, folder):
  message = str(error.value)
  name = f'domainnet/{TARGET}'
  assert message.startswith(f'{name}/1.0.0 is damaged: example ')
  for text in (
    f'Delete its folder, {folder}, and make it again with\n',
    f'builder("{name}", file_format="array_record").download_and_prepare()',
  ):
    assert message.count(text) == 1
  assert len(message.splitlines()) == 3


@pytest.mark.parametrize('damage', [flip_a_bit, cut, remove])
@pytest.mark.parametrize('memory', ['yes', 'no'])
def test_damaged_records_are_named(data_dir, tmp_path, memory, damage):
  copied, folder, file = copy(data_dir, tmp_path)
  damage(file)
  with pytest.raises(UserError) as error:
    load(copied, memory)
  assert_names_the_damage(error, folder)


def test_records_damaged_while_training_are_named(data_dir, tmp_path):
  copied, folder, file = copy(data_dir, tmp_path)
  config, domains = load(copied, 'no')
  flip_a_bit(file)
  with pytest.raises(UserError) as error:
    list(make_batches(make_batch_fn(domains, SPEC, config), 0, 20))
  assert_names_the_damage(error, folder)
  with pytest.raises(UserError) as error:  # as an evaluation reads them
    domains.target.inputs[:]
  assert_names_the_damage(error, folder)


def test_what_is_not_prepared_is_to_be_prepared_for_streaming(tmp_path):
  with pytest.raises(UserError, match=r'", file_format="array_record"\)'):
    read_tfds.prepared_builder(make_config(tmp_path, 'no'), TARGET)


@pytest.mark.slow
def test_a_stopped_run_from_disk_ends_with_the_same_bits(data_dir, tmp_path):
  def train(workdir, steps):
    config = make_config(data_dir, 'no', 'tiny images')
    tiny.set_values(config, steps=steps, epochs=0, eval_batch_size=2)
    outcome = loop.train(config, tmp_path / workdir, devices=1)
    assert isinstance(
      outcome.experiment.domains.target.inputs, StreamedPictures
    )
    assert int(outcome.state.step) == steps
    return jax.device_get(outcome.state)

  stopped = train('stopped', 2)
  resumed, straight = train('stopped', 4), train('straight', 4)
  jax.tree.map(np.testing.assert_array_equal, resumed, straight)
  params = [jax.tree.leaves(s.params) for s in (stopped, resumed)]
  assert any((a != b).any() for a, b in zip(*params, strict=True))
