"""Source examples kept out of training."""

import numpy as np
import pytest
import tiny

from moda_jax.data.classes import match_classes
from moda_jax.data.load import load_for_each
from moda_jax.errors import UserError


def draw(share, data=None, **values):
  config = tiny.make_run_config(holdout=share, **values)
  return load_for_each([config], data or tiny.make_domains())[0]


def rows(domains):
  return [{image.tobytes() for image in domain.inputs} for domain in domains]


def test_each_source_is_split_and_the_target_left_alone():
  whole, drawn = tiny.make_domains(), draw(0.25)
  assert [d.size for d in drawn.held] == [10, 6, 8]  # round(7.5) is even
  for all_of_it, kept, held in zip(
    rows(whole.sources), rows(drawn.sources), rows(drawn.held), strict=True
  ):
    assert kept | held == all_of_it
    assert not kept & held
  np.testing.assert_array_equal(drawn.target.inputs, whole.target.inputs)
  np.testing.assert_array_equal(drawn.test.inputs, whole.test.inputs)


def test_labels_go_with_their_examples():
  whole, drawn = tiny.make_domains(), draw(0.25)
  for source, held in zip(whole.sources, drawn.held, strict=True):
    known = {
      x.tobytes(): y for x, y in zip(source.inputs, source.labels, strict=True)
    }
    assert [known[x.tobytes()] for x in held.inputs] == list(held.labels)


def test_the_split_is_drawn_by_seed():
  first, again, other = draw(0.25), draw(0.25), draw(0.25, seed=1)
  assert rows(first.held) == rows(again.held)
  assert rows(first.held) != rows(other.held)


def test_of_drawn_examples_a_share_is_held_out():
  drawn = draw(0.25, samples=20)
  assert [d.size for d in drawn.sources] == [15, 15, 15]
  assert [d.size for d in drawn.held] == [5, 5, 5]


def test_nothing_is_held_out_by_default():
  assert draw(0.0).held == ()
  assert [d.size for d in draw(0.0).sources] == [40, 24, 30]


def test_held_out_labels_follow_the_list_of_all_classes():
  data = tiny.make_domains()
  first = data.sources[0]
  renamed = first._replace(classes=('class 1', 'class 0', 'class 2'))
  data = data._replace(sources=(renamed, *data.sources[1:]))
  matched = match_classes(draw(0.25, data))
  before = draw(0.25, data).held[0]
  names = [before.classes[i] for i in before.labels]
  held = matched.held[0]
  assert [held.classes[i] for i in held.labels] == names
  assert held.classes == matched.sources[0].classes


def test_a_share_that_leaves_nothing_is_refused():
  with pytest.raises(
    UserError, match=r"holdout = 0.99 leaves 'a', which has 40"
  ):
    draw(0.99)
