"""A few labelled examples of the target, as a source and held out."""

import numpy as np
import pytest
import tiny

from moda_jax.data import labelled, load
from moda_jax.data.classes import match_classes
from moda_jax.data.domains import some_rows
from moda_jax.errors import UserError
from moda_jax.training.experiment import Experiment

LABELS = {'3': 'x', '10': 'y', '4': 'y', '31': 'x', '0': 'z'}


def write(path, labels=LABELS, header='example,label\n'):
  lines = [f'{name},{label}\n' for name, label in labels.items()]
  path.write_text(header + ''.join(lines))
  return str(path)


def make_whole():
  """Returns domains whose target may be its own test set."""
  domains = tiny.make_domains()
  classes = ('x', 'y', 'z')
  sources = tuple(d._replace(classes=classes) for d in domains.sources)
  target = domains.target._replace(classes=classes)
  return domains._replace(sources=sources, target=target, test=target)


def draw(path, **values):
  """Returns the whole domains and those drawn."""
  config = tiny.make_run_config(target_labels=path, **values)
  config = labelled.name_source(config)
  whole = labelled.add_source(make_whole(), config.data)
  return whole, match_classes(load.draw(whole, config)), config


@pytest.mark.parametrize(
  'header', ['example,label\n', '', '\ufeffexample,label\n']
)
def test_half_of_them_are_a_source_and_half_are_held_out(tmp_path, header):
  path = write(tmp_path / 'labels.csv', header=header)
  whole, drawn, config = draw(path, evaluate_on='target')
  assert config.data.sources == ('a', 'b', 'c', 't_labelled')
  assert labelled.name_source(config) == config
  source = drawn.sources[-1]
  assert source.name == 't_labelled'
  held = labelled.take_held(drawn, path)
  taught = dict(zip(source.names, source.labels, strict=True))
  chosen = dict(zip(held.names, held.labels, strict=True))
  assert len(taught) == 3
  assert len(chosen) == 2
  found = {n: drawn.target.classes[i] for n, i in (taught | chosen).items()}
  assert found == LABELS
  for domain in (source, held):
    for name, pixels in zip(domain.names, domain.inputs, strict=True):
      np.testing.assert_array_equal(pixels, whole.target.inputs[int(name)])
  # They are still in the target, and are not tested on.
  assert drawn.target.size == 32
  assert drawn.test.size == 27
  assert set(drawn.test.names) == set(drawn.target.names) - set(LABELS)
  assert not set(taught) & set(chosen)


@pytest.mark.parametrize('evaluate_on', ['target', 'undrawn'])
def test_labelled_examples_are_always_drawn(tmp_path, evaluate_on):
  path = write(tmp_path / 'labels.csv')
  whole, drawn, _ = draw(path, samples=8, evaluate_on=evaluate_on)
  assert [source.size for source in drawn.sources] == [8, 8, 8, 3]
  assert drawn.target.size == 8
  assert set(LABELS) <= set(drawn.target.names)
  assert not set(LABELS) & set(drawn.test.names)
  assert drawn.test.size == (3 if evaluate_on == 'target' else 24)
  for domain in (drawn.target, drawn.test):
    rows = [int(name) for name in domain.names]
    np.testing.assert_array_equal(domain.inputs, whole.target.inputs[rows])


def test_nothing_is_held_out_of_the_few(tmp_path):
  path = write(tmp_path / 'labels.csv')
  _, drawn, _ = draw(path, holdout=0.25)
  assert [source.size for source in drawn.sources] == [30, 18, 22, 3]
  assert [source.name for source in drawn.held] == ['a', 'b', 'c']


def test_a_test_split_has_other_examples(tmp_path):
  path = write(tmp_path / 'labels.csv')
  whole, drawn, _ = draw(path)
  assert drawn.test.size == whole.test.size


def test_without_a_table_nothing_changes():
  whole, drawn, config = draw('', evaluate_on='target')
  assert config.data.sources == ('a', 'b', 'c')
  assert drawn.test.inputs is drawn.target.inputs
  assert drawn.target.inputs is whole.target.inputs


def test_networks_scale_by_whole_domains():
  domains = tiny.make_domains()
  few = domains.sources[0].take(np.arange(2))._replace(name='t_labelled')
  more = domains._replace(sources=(*domains.sources, few))
  np.testing.assert_array_equal(some_rows(more), some_rows(domains))


def test_other_labels_are_another_run(tmp_path):
  found = []
  for label in 'yz':
    labels = LABELS | {'3': label}
    whole, _, _ = draw(write(tmp_path / 'labels.csv', labels))
    found.append(whole.sources[-1].fingerprint)
  assert len(set(found)) == 2


WRONG = [
  ('example,label\n3,x\n99,y\n', ['1 of 2 are not examples', "'99'", "'0'"]),
  ('3,x\n4,q\n', ["'q' is not a class", 'x, y, z']),
  ('3,x\n3,x\n', ["line 2: '3' is there twice"]),
  ('3,x\n4,y,z\n', ["line 2: '4,y,z'", 'example,label']),
  (',x\n4,y\n', ["line 1: ',x'"]),
  ('3\n4\n', ["line 1: '3'"]),
  ('', ['has 0 labelled examples', 'at least 2']),
  ('example,label\n3,\n4,\n5,x\n', ['has 1 labelled examples']),
  ('"3,x\n', ['cannot be read']),
  (b'\xff\xfe\x00', ['cannot be read']),
]


@pytest.mark.parametrize(('text', 'messages'), WRONG)
def test_wrong_tables_are_refused(tmp_path, text, messages):
  path = tmp_path / 'labels.csv'
  path.write_bytes(text if isinstance(text, bytes) else text.encode())
  with pytest.raises(UserError) as error:
    draw(str(path))
  for message in [str(path), *messages]:
    assert message in str(error.value)


def test_a_table_that_is_not_there(tmp_path):
  with pytest.raises(UserError, match=r'none\.csv.* cannot be read'):
    draw(str(tmp_path / 'none.csv'))


def test_too_few_samples_and_nothing_left_to_test(tmp_path):
  path = write(tmp_path / 'labels.csv')
  with pytest.raises(UserError, match='samples = 4, but 5 examples'):
    draw(path, samples=4)
  with pytest.raises(UserError, match='labels all 5 examples'):
    draw(path, samples=5, evaluate_on='target')


def test_a_domain_of_the_same_name(tmp_path):
  path = write(tmp_path / 'labels.csv')
  config = tiny.make_run_config(target_labels=path)
  config.data.datasets['t_labelled'] = 'folder:x'
  with pytest.raises(UserError, match='another domain of this name'):
    labelled.name_source(config)


def test_a_method_that_reads_all_labels_is_refused(tmp_path):
  path = write(tmp_path / 'labels.csv', {'3': 'class 0', '4': 'class 1'})
  config = tiny.make_run_config(
    method='supervised', target_labels=path, evaluate_on='target'
  )
  domains = tiny.make_domains()
  domains = domains._replace(test=domains.target)
  with pytest.raises(UserError, match='target_labels adds nothing'):
    Experiment(config, domains, devices=1)
