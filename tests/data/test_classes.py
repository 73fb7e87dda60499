import logging

import numpy as np
import pytest

from moda_jax.data.classes import match_classes
from moda_jax.data.domains import Domain, Domains
from moda_jax.errors import UserError


def make(name, names, classes=None):
  """Returns a domain of examples of these classes; None where unlabelled."""
  count = 4 if names is None else len(names)
  inputs = np.zeros((count, 2, 2, 3), np.uint8)
  if names is None:
    return Domain(name, 'made up', inputs, None, ())
  classes = classes or tuple(sorted(set(names)))
  labels = np.asarray([classes.index(n) for n in names], np.int32)
  return Domain(name, 'made up', inputs, labels, classes)


def match(target, *sources):
  return match_classes(Domains(sources, target, target))


def names_of(domain):
  return [domain.classes[label] for label in domain.labels]


def test_labels_are_matched_by_name_not_by_number():
  a = make('a', ['mug', 'pen', 'mug'], ('pen', 'mug'))
  b = make('b', ['pen', 'mug'], ('mug', 'pen'))
  t = make('t', ['pen', 'pen', 'mug'], ('pen', 'mug'))
  matched = match(t, a, b)
  assert names_of(matched.sources[0]) == ['mug', 'pen', 'mug']
  assert names_of(matched.sources[1]) == ['pen', 'mug']
  assert names_of(matched.target) == ['pen', 'pen', 'mug']
  assert {d.classes for d in (*matched.sources, matched.target)} == {
    ('mug', 'pen')
  }


def test_a_common_order_is_kept():
  classes = ('zero', 'one', 'two')
  a, t = make('a', ['one', 'two'], classes), make('t', ['zero'], classes)
  assert match(t, a).sources[0].classes == classes


def test_a_source_may_lack_a_class_and_is_told(caplog):
  with caplog.at_level(logging.WARNING, 'moda_jax'):
    matched = match(make('t', ['c']), make('a', ['a', 'b']), make('b', ['c']))
  assert matched.num_classes == 3
  assert names_of(matched.sources[1]) == ['c']
  assert "source b lacks 'a', 'b'" in caplog.text


def test_cases_differ_where_a_domain_has_both():
  matched = match(make('t', ['A']), make('a', ['a', 'A']), make('b', ['a']))
  assert matched.sources[0].classes == ('A', 'a')


def test_a_target_without_labels_has_the_classes_of_the_sources():
  matched = match(make('t', None), make('a', ['x', 'y']))
  assert matched.target.labels is None
  assert matched.target.classes == ('x', 'y')


@pytest.mark.parametrize(
  ('target', 'sources', 'words'),
  [
    (['pen', 'bike'], [['pen', 'mug']], ["'bike'", "'t'", "'mug', 'pen'"]),
    (['pin'], [['pen', 'mug']], ["'pin'", "Did you mean 'pen'"]),
    (['Pen'], [['pen', 'mug']], ["'Pen' of 't'", "'pen' of 'a'", 'in case']),
    (['x'], [['x', 'y'], ['X', 'y']], ["'x' of 'a'", "'X' of 'b'", 'in case']),
    (None, [['x', 'y'], ['x ', 'y']], ["'x' of 'a'", "'x ' of 'b'", 'spaces']),
    (['pen'], [['pen', 'pen'], ['pen']], ['a, b', "'pen'", 'single class']),
    ([], [['pen', 'mug']], ["'t'", 'no examples']),
  ],
)
def test_what_cannot_be_matched_is_refused_by_name(target, sources, words):
  made = [make('ab'[i], names) for i, names in enumerate(sources)]
  with pytest.raises(UserError) as error:
    match(make('t', target), *made)
  for word in words:
    assert word in str(error.value)
