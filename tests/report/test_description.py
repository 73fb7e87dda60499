import io

import matplotlib.style
import ml_collections
import numpy as np
import pytest
import tiny
from PIL import Image

from configs import folder
from moda_jax.data.domains import Domain
from moda_jax.errors import UserError
from moda_jax.report import data_plots, description
from moda_jax.training import options


@pytest.fixture
def pictures(tmp_path):
  rng = np.random.default_rng(0)
  counts = {'a': {'pen': 3, 'mug': 1}, 'b': {'pen': 2, 'mug': 2}}
  for domain, classes in counts.items():
    for name, count in classes.items():
      place = tmp_path / 'data' / domain / name
      place.mkdir(parents=True)
      for i in range(count):
        pixels = rng.integers(0, 256, (20, 20, 3), np.uint8)
        Image.fromarray(pixels).save(place / f'{i}.png')
  return tmp_path / 'data'


def test_text_and_pictures_tell_counts_shares_and_distances(pictures, tmp_path):
  config = folder.get_config(f'{pictures},target=b')
  text, files = description.describe(config, tmp_path / 'out')
  for line in (
    f'a            source          4          4  folder {pictures}/a',
    f'b            target          4          4  folder {pictures}/b',
    f'b            test            4             folder {pictures}/b',
    '  mug  25.0 %      1 █████████████\n',
    '  pen  75.0 %      3 ████████████████████████████████████████\n',
  ):
    assert line in text
  # By hand: shares (1/4, 3/4) against (1/2, 1/2).
  assert 'a ↔ b  0.1839' in text
  assert (tmp_path / 'out' / 'description.txt').read_text() == text
  assert [file.name for file in files[1:]] == ['labels.png', 'samples.png']
  for file in files[1:]:
    with Image.open(file) as picture:
      assert len(set(picture.convert('L').get_flattened_data())) > 20


def test_samples_are_the_views_that_training_has(pictures):
  config = folder.get_config(f'{pictures},target=b')
  domains = tiny.make_domains()
  views = description.draw_views(
    options.check(config).views, 0, [*domains.sources, domains.target]
  )
  assert list(views) == ['a', 'b', 'c', 't']
  held = {image.tobytes() for image in domains.sources[0].inputs}
  assert {image.tobytes() for image in views['a']['image']} <= held
  for before, after in (('image', 'weak'), ('weak', 'strong')):
    assert (views['a'][before] != views['a'][after]).any()


@pytest.mark.parametrize(
  'names',
  [
    ('books', 'dvd', 'electronics', 'kitchen'),
    ('clipart', 'infograph', 'painting', 'quickdraw', 'real', 'sketch'),
  ],
)
def test_distances_are_written_within_their_cells(names):
  rng = np.random.default_rng(0)
  domains = [
    Domain(name, '', np.zeros((5000, 1)), labels, ('negative', 'positive'))
    for name, labels in zip(
      names, rng.integers(0, 2, (len(names), 5000)), strict=True
    )
  ]
  with matplotlib.style.context('default'):  # experiments set their own
    figure = data_plots.draw_labels(domains)
    figure.savefig(io.BytesIO())  # lays it out
  axes = figure.axes[-1]
  cell = axes.get_window_extent().width / len(names)
  widths = [text.get_window_extent().width for text in axes.texts]
  assert len(widths) == len(names) ** 2
  assert max(len(text.get_text()) for text in axes.texts) >= 7  # 0.00991
  assert max(widths) < 0.9 * cell


def test_a_place_that_cannot_be_written_to_is_refused(pictures, tmp_path):
  (tmp_path / 'file').write_text('')
  config = folder.get_config(f'{pictures},target=b')
  with pytest.raises(UserError, match='--output'):
    description.describe(config, tmp_path / 'file')
  assert isinstance(config, ml_collections.ConfigDict)
