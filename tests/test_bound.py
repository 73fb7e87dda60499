"""The bound: its terms, and what it measures of a finished run."""

import math

import numpy as np
import pytest
import tiny
from drawn import check_files, read_csv

import moda_jax
from experiments import bound
from experiments.theory import terms
from experiments.theory.measure import Bound, find_samples
from moda_jax.errors import UserError
from moda_jax.training import loop
from moda_jax.training.saved_states import find_steps, load_state


def test_the_terms_of_the_bound():
  n, d, delta = 1000, 10, 0.1
  equal = terms.sampling_term([0.5, 0.5], n, d, delta)
  inner = 2 * d * math.log(2 * (n + 1)) + math.log(8 / delta)
  assert equal == pytest.approx(2 * math.sqrt(2 * inner / n * 0.5))
  single = terms.sampling_term([1.0, 0.0], n, d, delta)
  assert single == pytest.approx(equal * math.sqrt(2))
  v = terms.divergence_term(n, d, delta)
  inner = 2 * d * math.log(2 * n) + math.log(4 / delta)
  assert v == pytest.approx(2 * math.sqrt(inner / n))


def test_the_divergence_is_that_of_the_mixture():
  ones, zeros = np.ones(4, bool), np.zeros(4, bool)
  assert terms.divergence([0.5, 0.5], [ones, ones], zeros) == 2
  assert terms.divergence([1.0, 0.0], [ones, zeros], ones) == 0
  assert terms.divergence([0.25, 0.75], [ones, zeros], zeros) == 0.5


def test_the_bound_takes_two_samples_of_each_source(tmp_path):
  domains = tiny.make_domains()
  count = len(domains.sources)
  assert find_samples(domains, 2 * count) == 2 * count
  assert find_samples(domains) >= find_samples(domains, 3 * count + 1)
  for samples in (1, 2 * count - 1):
    with pytest.raises(UserError, match=f'{2 * count} or more are needed'):
      find_samples(domains, samples)
  for delta in (0, 1, 2, math.nan):
    with pytest.raises(UserError, match=f'--delta={delta:g} must be above 0'):
      Bound(tmp_path, delta=delta)


@pytest.mark.slow
def test_the_bound_of_a_run_at_each_checkpoint(tmp_path):
  domains = tiny.make_domains()
  for domain in (*domains.sources, domains.target):
    file = tmp_path / f'{domain.name}.npz'
    np.savez(file, images=domain.inputs, labels=domain.labels)
  values = 'steps=6,checkpoint_every=2,keep_checkpoints=9,method=moda'
  values += ',batch_size=8,log_every=2,network=tiny images'
  config = moda_jax.get_config(f'arrays:{tmp_path},target=t,{values}')
  run = tmp_path / 'run'
  loop.train(config, run, devices=1)
  assert find_steps(run) == [2, 4, 6]
  assert int(load_state(run, 4).step) == 4
  measured = Bound(run, dimension=5, training_steps=3)
  assert measured.samples == 30  # of 32 target samples, a third per source
  points = measured.measure()
  assert [point.step for point in points] == [2, 4, 6]
  for point in points:
    assert 0 <= point.risk <= 1
    assert 0 <= point.half_divergence <= 1
    assert point.deviation == points[0].deviation
    assert sum(point.alpha.values()) == pytest.approx(1, abs=1e-5)
    assert 0 <= point.target_risk <= 1
  files = bound.draw(points, 'random', 30, 5, tmp_path / 'bound')
  check_files(files)
  rows = read_csv(files[-1])
  assert [row['lambda'] for row in rows] == ['unknowable'] * 3
