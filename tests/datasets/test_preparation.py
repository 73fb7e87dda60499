"""One bar for each data set, however many splits and stages it has."""

import io
import sys
import types

import pytest

from moda_jax.datasets import preparation


class Builder:
  info = types.SimpleNamespace(full_name='mnist_idx/1.0.0')

  def _generate_examples(self, count):
    yield from ((i, {}) for i in range(count))


@pytest.mark.parametrize('watched', [True, False])
def test_one_bar_counts_the_examples_of_all_splits(monkeypatch, watched):
  class Stream(io.StringIO):
    def isatty(self):
      return watched

  stream, builder = Stream(), Builder()
  monkeypatch.setattr(sys, 'stderr', stream)
  with preparation._show_examples(builder):
    for count in (60_000, 10_000):
      assert len(list(builder._generate_examples(count))) == count
  text = stream.getvalue()
  assert ('mnist_idx: 100%' in text and '70000/70000' in text) == watched
  assert bool(text) == watched
  assert '_generate_examples' not in vars(builder)
