"""Domains from what is not a mapping of arrays."""

import numpy as np
import pytest

from moda_jax.data.in_memory import make_domain, make_domains
from moda_jax.errors import UserError

PAIR = (np.zeros((2, 8, 8, 3), np.uint8), [0, 1])
RAGGED = np.empty(2, object)
RAGGED[:] = [np.zeros((8, 8, 3), np.uint8), np.zeros((9, 8, 3), np.uint8)]


@pytest.mark.parametrize(
  ('data', 'message'),
  [
    ([PAIR, PAIR], 'data of type list; a mapping'),
    (PAIR[0], 'data of type ndarray; a mapping'),
    ({3: PAIR, 't': PAIR}, '3 cannot name a domain; a string'),
    ({'a,b': PAIR, 't': PAIR}, "'a,b' cannot name a domain"),
    ({'a': PAIR[0], 't': PAIR}, r"domain 'a' must be \(images, labels\)"),
    ({'a': 'photos/a', 't': PAIR}, r"domain 'a' must be \(images, labels\)"),
    ({'a': (RAGGED, [0, 1]), 't': PAIR}, r'a: images of shape \(2,\)'),
    ({'t': PAIR}, "target='t' must be one .* and another is needed"),
  ],
)
def test_what_is_not_a_mapping_of_arrays_is_refused(data, message):
  with pytest.raises(UserError, match=message):
    make_domains(data, 't')


def test_a_domain_without_examples_is_refused():
  with pytest.raises(UserError, match='at least one image'):
    make_domain('a', np.zeros((0, 8, 8, 3), np.uint8), np.zeros(0, int))
