"""The command that labels pictures with a run's folder alone."""

import csv
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tiny
from PIL import Image

import moda_jax
from moda_jax.errors import UserError
from moda_jax.training import labelling


@pytest.fixture(scope='module')
def workdir(tmp_path_factory):
  place = tmp_path_factory.mktemp('predict') / 'run'
  config = tiny.make_run_config(method='source_only', steps=6)
  moda_jax.train(config, place, tiny.make_domains())
  return place


@pytest.fixture
def pictures(tmp_path):
  """Returns a folder of pictures and what their classes are, by path."""
  test = tiny.make_domains().test
  known = {}
  for i, (image, label) in enumerate(
    zip(test.inputs, test.labels, strict=True)
  ):
    path = tmp_path / 'new' / f'deep {i % 3}' / f'{i}.png'
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(image).save(path)
    known[str(path)] = test.classes[label]
  return tmp_path / 'new', known


def run(workdir, images, out, threshold=0.5):
  return moda_jax.load(workdir).label(images, out, threshold)


def read(path):
  with path.open(newline='') as file:
    return list(csv.DictReader(file))


def test_pictures_are_labelled_without_any_data(
  workdir, pictures, tmp_path, monkeypatch
):
  folder, known = pictures
  shutil.copytree(workdir, tmp_path / 'moved')

  def refuse(*_):
    raise AssertionError('data is read')

  monkeypatch.setattr('moda_jax.data.load._read', refuse)
  monkeypatch.setattr(labelling, '_AT_A_TIME', 4)
  out = tmp_path / 'labels.csv'
  said = run(tmp_path / 'moved', folder, out, 0.0)
  rows = read(out)
  assert {row['path'] for row in rows} == set(known)
  right = [row['class'] == known[row['path']] for row in rows]
  assert np.mean(right) == moda_jax.load(workdir).accuracy
  assert f'{len(known)} pictures, 0 unsure' in said
  trained = moda_jax.load(workdir)
  probabilities = trained.predict([row['path'] for row in rows])
  shown = np.asarray(
    [[float(row[f'confidence{n}']) for n in ('', '_2', '_3')] for row in rows]
  )
  np.testing.assert_allclose(shown, -np.sort(-probabilities, axis=1), atol=6e-5)
  for row in rows:
    names = {row['class'], row['class_2'], row['class_3']}
    assert names == set(trained.classes)


def test_unsure_and_unreadable_pictures_are_remarked_on(
  workdir, pictures, tmp_path
):
  folder, _ = pictures
  for file in sorted(folder.rglob('*.png'))[2:]:
    file.unlink()
  (folder / 'bad.jpg').write_text('not a picture')
  (folder / '.hidden.jpg').write_text('not looked at')
  (folder / 'notes.txt').write_text('not looked at')
  out = tmp_path / 'labels.csv'
  said = run(workdir, folder, out, 1.0)
  rows = {row['path']: row for row in read(out)}
  assert len(rows) == 3
  assert 'bad.jpg' in rows[str(folder / 'bad.jpg')]['remark']
  assert rows[str(folder / 'bad.jpg')]['class'] == ''
  others = [r for path, r in rows.items() if not path.endswith('bad.jpg')]
  assert [row['remark'] for row in others] == ['unsure', 'unsure']
  assert all(row['class'] for row in others)
  assert '2 unsure (below 1), 1 unreadable' in said


def test_a_single_picture_of_any_size_and_mode(workdir, tmp_path):
  grey = np.arange(50 * 40, dtype=np.uint8).reshape(50, 40)
  Image.fromarray(grey).save(tmp_path / 'x.png')
  out = tmp_path / 'labels.csv'
  run(workdir=workdir, images=tmp_path / 'x.png', out=out)
  (row,) = read(out)
  assert row['path'] == str(tmp_path / 'x.png')


@pytest.mark.parametrize(
  ('values', 'message'),
  [
    ({'images': '{tmp}/none'}, 'none is not a folder or a picture'),
    ({'images': '{tmp}/empty'}, 'holds no pictures'),
    ({'images': '{tmp}/bad'}, r'None of the pictures can be read.*x\.png'),
    ({'workdir': '{tmp}'}, 'does not hold a run'),
    ({'out': '{tmp}/none/x.csv'}, 'must be a file in a folder that is there'),
    ({'out': '{tmp}'}, 'must be a file in a folder'),
    ({'threshold': 1.5}, r'--threshold=1.5 must lie within 0..1'),
    ({'threshold': float('nan')}, r'--threshold=nan must lie within 0..1'),
  ],
)
def test_wrong_flags_are_refused(workdir, pictures, tmp_path, values, message):
  (tmp_path / 'empty').mkdir()
  (tmp_path / 'bad').mkdir()
  (tmp_path / 'bad' / 'x.png').write_bytes(b'')
  good = {'workdir': workdir, 'images': pictures[0], 'out': tmp_path / 'x.csv'}
  given = {
    k: v.format(tmp=tmp_path) if isinstance(v, str) else v
    for k, v in values.items()
  }
  with pytest.raises(UserError, match=message):
    run(**(good | given))
  assert not (tmp_path / 'x.csv').exists()


@pytest.mark.slow
def test_the_command_writes_the_table(pictures, tmp_path):
  config = tiny.make_run_config(method='source_only', steps=2)
  config.network.name, config.network.width = 'digits', 0.05
  workdir = tmp_path / 'run'
  moda_jax.train(config, workdir, tiny.make_domains())
  command = [sys.executable, '-m', 'moda_jax.predict']
  flags = [f'--workdir={workdir}', f'--images={pictures[0]}']
  out = tmp_path / 'labels.csv'
  root = pathlib.Path(moda_jax.__file__).parents[1]
  made = subprocess.run(
    [*command, *flags, f'--out={out}'], cwd=root, capture_output=True, text=True
  )
  assert made.returncode == 0, made.stderr
  assert '21 pictures' in made.stdout
  assert len(read(out)) == 21
  missing = subprocess.run(
    [*command, flags[0]], cwd=root, capture_output=True, text=True
  )
  assert (missing.returncode, missing.stderr.strip()) == (
    2,
    '--images must be given; see --help.',
  )


def test_a_run_on_rows_is_refused(tmp_path, pictures):
  rng = np.random.default_rng(0)
  data = {n: (rng.normal(size=(9, 4)), np.arange(9) % 2) for n in 'abt'}
  moda_jax.adapt(data, 't', tmp_path / 'rows', steps=1, batch_size=8)
  with pytest.raises(UserError, match='rows of features, not on pictures'):
    run(workdir=tmp_path / 'rows', images=pictures[0], out=tmp_path / 'x.csv')
