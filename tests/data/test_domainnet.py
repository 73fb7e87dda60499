"""DomainNet, as TFDS's own builder prepares it, is read from disk."""

import numpy as np
import pytest
from tensorflow_datasets.core.utils import tqdm_utils

import moda_jax
from experiments.benchmark import made_up_pictures
from moda_jax.data.batches import make_batch_fn, make_batches
from moda_jax.data.load import load_domains
from moda_jax.data.spec import BatchSpec
from moda_jax.data.streamed import StreamedPictures

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


def load(data_dir, memory):
  values = f'network=digits,image_size=32,batch_size=3,memory={memory}'
  config = moda_jax.get_config(
    f'domainnet:{TARGET},data_dir={data_dir},{values}'
  )
  config.data.sources = tuple(SOURCES)
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
