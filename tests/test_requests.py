"""Which values of a study each of its methods gets."""

import pathlib

import pytest

from experiments.runs.requests import make_requests
from experiments.runs.scales import find_setting
from moda_jax.errors import UserError

TINY = find_setting('digits', 'tiny')


def argue(methods, values):
  requests = make_requests(
    TINY, ['mnistm'], methods, [0], pathlib.Path(), values
  )
  return {request.method: request.config() for request in requests}


def test_a_value_that_another_makes_readable_is_taken():
  values = ['weak_rotation=20', 'weak_augment=always']
  configs = argue(['fm', 'moda'], values)
  assert {c.views.weak_rotation for c in configs.values()} == {20.0}
  values = ['learned_decay=0.9', 'strong=learned']
  configs = argue(['fm', 'moda'], values)
  assert configs['fm'].views.learned_decay == 0.9
  assert configs['moda'].views.strong == 'randaugment'  # it has no strong view


@pytest.mark.parametrize(
  ('values', 'message'),
  [
    (['weak_rotation=20'], 'none of the methods reads it'),
    (['strong=learned'], 'none of the methods reads it'),
    (['weak_rotation=20', 'weak_augment=never'], 'none of the methods reads'),
    (['cutout=last', 'network=mlp'], "'cutout=last': none of the methods"),
    (['init=auto'], "'init=auto': a study names what it compares"),
  ],
)
def test_what_no_method_reads_is_refused(values, message):
  with pytest.raises(UserError, match=message):
    argue(['moda'], values)
