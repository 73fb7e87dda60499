"""The user's own data end to end: folders, arrays, and arrays in memory."""

import csv
import json

import numpy as np
import pytest
import tiny
from PIL import Image

import moda_jax
from configs import arrays, folder
from moda_jax import report
from moda_jax.errors import UserError
from moda_jax.training import loop as train
from moda_jax.training import predictions, reopened
from moda_jax.training.evaluation import Evaluator
from moda_jax.training.model import Model

NAMES = ('mug', 'pen', 'ruler')
VALUES = {
  'network': 'tiny images',
  'steps': 3,
  'batch_size': 8,
  'method': 'moda',
}
QUICK = ','.join(f'{key}={value}' for key, value in VALUES.items())


def make_data():
  """Returns `{name: (images, class names)}` that a classifier can learn."""
  domains = tiny.make_domains()
  made = (*domains.sources, domains.target)
  return {d.name: (d.inputs, [NAMES[i] for i in d.labels]) for d in made}


def write_folders(root, flat=()):
  for domain, (images, names) in make_data().items():
    for i, (image, name) in enumerate(zip(images, names, strict=True)):
      place = root / domain if domain in flat else root / domain / name
      place.mkdir(parents=True, exist_ok=True)
      Image.fromarray(image).save(place / f'{name}_{i:02d}.png')


def read_predictions(path):
  with path.open() as file:
    return list(csv.DictReader(file))


def run(root, workdir):
  """Trains on the folder; returns the outcome and what is predicted."""
  config = folder.get_config(f'{root},target=t,{QUICK}')
  assert config.data.sources == ('a', 'b', 'c')
  outcome = train.train(config, workdir)
  path = predictions.write_predictions(config, workdir)
  return outcome, read_predictions(path)


def test_pictures_with_and_without_labels_of_the_target(tmp_path):
  """Labels of the target serve evaluation, and nothing else."""
  write_folders(tmp_path / 'data')
  labelled, rows = run(tmp_path / 'data', tmp_path / 'labelled')
  assert len(rows) == 32
  right = [row['example'].split('/')[0] == row['class'] for row in rows]
  assert np.mean(right) == labelled.accuracy
  write_folders(tmp_path / 'flat', flat='t')
  outcome, flat_rows = run(tmp_path / 'flat', tmp_path / 'run')
  assert (outcome.accuracy, outcome.best_accuracy) == (None, None)
  for row in rows:
    row['example'] = row['example'].split('/')[1]
  assert flat_rows == rows
  page = report.write_run_page(outcome, tmp_path / 'run')
  assert 'no labels' in page.read_text()
  with pytest.raises(UserError, match='--mode=predict'):
    reopened.evaluate(outcome.experiment.config, tmp_path / 'run')


@pytest.mark.slow
def test_predictions_are_prepared_once_and_written_whole(tmp_path, monkeypatch):
  write_folders(tmp_path / 'data')
  config = folder.get_config(f'{tmp_path / "data"},target=t,{QUICK},method=moe')
  config.run.eval_batch_size = 8  # 4 batches of 32 pictures
  train.train(config, tmp_path / 'run')
  prepared = []
  observe = Evaluator.observe_sources

  def count(self, state):
    prepared.append(state)
    return observe(self, state)

  monkeypatch.setattr(Evaluator, 'observe_sources', count)
  path = predictions.write_predictions(config, tmp_path / 'run')
  assert len(prepared) == 1
  before, names = path.read_text(), sorted((tmp_path / 'run').iterdir())

  def fail(*_):
    raise OSError('no space left')

  monkeypatch.setattr(Model, 'predict_all', fail)
  with pytest.raises(OSError, match='no space'):
    predictions.write_predictions(config, tmp_path / 'run')
  assert path.read_text() == before
  assert sorted((tmp_path / 'run').iterdir()) == names


@pytest.mark.slow
def test_arrays_in_files_and_in_memory_are_the_same_run(tmp_path):
  data = make_data()
  (tmp_path / 'data').mkdir()
  for name, (images, labels) in data.items():
    np.savez(tmp_path / 'data' / f'{name}.npz', images=images, labels=labels)
  config = arrays.get_config(f'{tmp_path / "data"},target=t,{QUICK}')
  from_files = train.train(config, tmp_path / 'files')
  in_memory = moda_jax.adapt(data, 't', tmp_path / 'memory', **VALUES)
  assert in_memory.classes == NAMES
  inputs = data['t'][0]
  probabilities = [
    from_files.experiment.predict(from_files.state, inputs),
    in_memory.predict(inputs),
  ]
  np.testing.assert_array_equal(*probabilities)
  predicted = np.asarray(NAMES)[np.argmax(probabilities[1], axis=-1)]
  right = predicted == np.asarray(data['t'][1])
  assert np.mean(right) == in_memory.accuracy == from_files.accuracy


def test_a_source_without_labels_is_refused(tmp_path):
  write_folders(tmp_path / 'data', flat='b')
  config = folder.get_config(f'{tmp_path / "data"},target=t,{QUICK}')
  with pytest.raises(UserError, match="source 'b' has no labels"):
    train.train(config, tmp_path / 'run')


def test_supervised_is_not_tested_on_what_it_was_trained_on(tmp_path):
  values = VALUES | {'method': 'supervised'}
  domains = moda_jax.adapt(make_data(), 't', tmp_path, **values)._experiment
  domains = domains.domains
  assert (domains.target.size, domains.test.size) == (25, 7)
  parts = [*domains.target.inputs, *domains.test.inputs]
  whole = make_data()['t'][0]
  assert {x.tobytes() for x in parts} == {x.tobytes() for x in whole}


def test_draws_and_the_rest_of_arrays_in_memory(tmp_path):
  values = VALUES | {'samples': 16, 'evaluate_on': 'undrawn'}
  domains = moda_jax.adapt(make_data(), 't', tmp_path, **values)._experiment
  domains = domains.domains
  assert [d.size for d in domains.sources] == [16, 16, 16]
  assert (domains.target.size, domains.test.size) == (16, 16)
  data = make_data()
  data['a'] = (255 - data['a'][0], data['a'][1])
  with pytest.raises(UserError, match='another config'):
    moda_jax.adapt(data, 't', tmp_path, **values)


def replace_pictures(root):
  for file in (root / 't').iterdir():
    Image.fromarray(255 - np.asarray(Image.open(file))).save(file)


def replace_arrays(root):
  held = dict(np.load(root / 't.npz'))
  np.savez(root / 't.npz', **held | {'images': 255 - held['images']})


@pytest.mark.parametrize(
  ('module', 'replace'), [(folder, replace_pictures), (arrays, replace_arrays)]
)
def test_a_run_of_files_that_were_replaced_is_not_resumed(
  tmp_path, module, replace
):
  root, workdir = tmp_path / 'data', tmp_path / 'run'
  root.mkdir()
  if module is folder:
    write_folders(root, flat='t')
  else:
    for name, (images, labels) in make_data().items():
      np.savez(root / f'{name}.npz', images=images, labels=labels)
  config = module.get_config(f'{root},target=t,{QUICK},method=source_only')
  train.train(config, workdir)
  before = (workdir / 'metrics.jsonl').read_text()
  replace(root)
  with pytest.raises(UserError, match=r'fingerprints\.t: .*been changed'):
    train.train(config, workdir)
  assert (workdir / 'metrics.jsonl').read_text() == before
  record = json.loads((workdir / 'config.json').read_text())
  del record['record']['fingerprints']  # as runs before there were any
  (workdir / 'config.json').write_text(json.dumps(record))
  train.train(config, workdir)


def test_unreadable_pictures_are_skipped_where_asked_for(tmp_path, caplog):
  root = tmp_path / 'data'
  write_folders(root, flat='t')
  (root / 't' / 'bad.jpg').write_text('not a picture')
  (root / 'a' / 'mug' / 'gone.jpg').symlink_to(tmp_path / 'gone.jpg')
  argument = f'{root},target=t,{QUICK},method=source_only'
  with pytest.raises(UserError, match=r'1 of 33 files of .*\n  bad\.jpg'):
    train.train(folder.get_config(argument), tmp_path / 'run')
  assert not (tmp_path / 'run').exists()
  config = folder.get_config(f'{argument},skip_unreadable=true')
  domains = train.train(config, tmp_path / 'run').experiment.domains
  assert (domains.sources[0].size, domains.target.size) == (40, 32)
  assert 'bad.jpg' not in domains.target.examples
  for text in (
    't: 1 of 33 pictures cannot be read and are skipped:\n  bad.jpg (not a',
    'a: 1 of 41 pictures cannot be read and are skipped:\n  mug/gone.jpg (a l',
  ):
    assert text in caplog.text


def test_lists_of_paths_and_of_images_that_differ_in_size(tmp_path):
  data = make_data()
  images, names = data['a']
  shapes = [(24 + i % 9, 32) for i in range(len(names))]
  data['a'] = ([x[:h, :w] for x, (h, w) in zip(images, shapes)], names)  # noqa: B905
  paths = []
  for i, image in enumerate(data['t'][0]):
    paths.append(tmp_path / f'{i}.png')
    Image.fromarray(image).save(paths[-1])
  (tmp_path / 'bad.png').write_bytes(b'')
  data['t'] = ([*paths, tmp_path / 'bad.png'], [*data['t'][1], 'pen'])
  values = VALUES | {'method': 'source_only'}
  with pytest.raises(UserError, match=r'bad\.png \(the file is empty\)'):
    moda_jax.adapt(data, 't', tmp_path / 'run', **values)
  values['skip_unreadable'] = True
  run = moda_jax.adapt(data, 't', tmp_path / 'run', **values)
  assert run.config.data.image_size == 32
  expected = make_data()['t'][0]
  np.testing.assert_array_equal(run.predict(paths), run.predict(expected))
  right = np.asarray(NAMES)[run.predict(paths).argmax(1)] == data['t'][1][:-1]
  assert right.mean() == run.accuracy


def test_supervised_needs_labels_of_the_target(tmp_path):
  data = make_data()
  data['t'] = (data['t'][0], None)
  values = VALUES | {'method': 'supervised'}
  with pytest.raises(UserError, match="'t' has none"):
    moda_jax.adapt(data, 't', tmp_path, **values)


@pytest.mark.parametrize(
  ('argument', 'message'),
  [
    ('', 'PATH,target=DOMAIN'),
    ('{data}', 'PATH,target=DOMAIN'),
    ('{data},target=a,target=b', 'named once'),
    ('{data},target=z', "unknown target 'z'; allowed are a, b, c, t"),
    ('{data},target=a,colour=3', 'colour=3'),
    ('{data}/none,target=a', 'none'),
  ],
)
def test_wrong_arguments_are_refused(tmp_path, argument, message):
  for name in 'abct':
    (tmp_path / name).mkdir()
  with pytest.raises(UserError, match=message):
    folder.get_config(argument.format(data=tmp_path))


@pytest.mark.parametrize(
  ('target', 'values', 'message'),
  [
    ('z', {}, "target='z'"),
    (['t'], {}, "target='.'t'.' must be one of the domains"),
    ('t', {'samples': 31}, "samples = 31, but 'b' has 24 examples"),
    ('t', {'features': 'tfidf'}, "'tfidf' is for sparse counts of words"),
    ('t', {'colour': 3}, 'colour'),
    ('t', {'sources': ('a',)}, 'sources: not a value that can be set'),
    ('t', {'datasets': {'a': 'b'}}, 'datasets: not a value that can'),
    ('t', {'tau': 0.3}, "'moda' does not read"),
    ('t', {'method': 'fm', 'tau': 3}, 'config.objective.tau = 3'),
    ('t', {'steps': 'many'}, 'steps'),
    ('t', {'evaluate_on': 'test_split'}, "'target' or 'undrawn'"),
    ('t', {'evaluate_on': 'undrawn'}, 'draw fewer'),
  ],
)
def test_wrong_calls_are_refused(tmp_path, target, values, message):
  with pytest.raises(UserError, match=message):
    moda_jax.adapt(make_data(), target, tmp_path, **(VALUES | values))
