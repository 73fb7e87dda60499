"""The line that a run prints, from the metrics that methods give."""

import pytest
import tiny

from moda_jax.training import progress


@pytest.mark.parametrize(
  ('metrics', 'shown'),
  [
    ({'class/a': 0.2, 'class/b': 0.4}, 'loss 1.000  class 0.300'),
    (  # of all sources at once, each domain's part beside it
      {'discriminator': 1.3, 'discriminator/a': 0.6},
      'loss 1.000  discriminator 1.300',
    ),
    (  # of each source by itself
      {'discriminator/a': 1.2, 'discriminator/b': 1.4, 'discriminator/s/a': 9},
      'loss 1.000  discriminator 1.300',
    ),
    (
      {'consistency': 0.1, 'confident': 0.25},
      'consistency 0.100  above τ 25 %',
    ),
    ({'alpha/a': 0.3, 'alpha/b': 0.7}, 'α a 0.30 b 0.70'),
    ({'target/accuracy': 0.5}, 'loss 1.000  target accuracy 50.00 %'),
  ],
)
def test_the_line_shows_what_there_is(metrics, shown):
  name = 'moda_fm' if 'alpha/a' in metrics else 'fm'
  line = progress.progress_line(
    tiny.make_method(name), 7, 100, {'loss': 1.0} | metrics
  )
  assert line.startswith('step   7/100  loss 1.000')
  assert line.endswith(shown)


@pytest.mark.parametrize(
  ('term', 'shown'),
  [
    ('adamatch', 'adamatch 0.200  above τ c 40 %'),
    (
      'fixmatch+mcc',
      'consistency 0.100  above τ 25 %  confusion 0.300',
    ),
    ('adamatch+mcc', 'adamatch 0.200  above τ c 40 %  confusion 0.300'),
    ('information', 'target entropy 0.500  variety 0.600'),
    ('dael', 'dael 0.700  above ε 75 %'),
    ('none', 'loss 1.000'),
  ],
)
def test_every_term_on_the_target_says_how_it_does(term, shown):
  metrics = {
    'loss': 1.0,
    'consistency': 0.1,
    'confident': 0.25,
    'adamatch': 0.2,
    'adamatch_confident': 0.4,
    'confusion': 0.3,
    'target_entropy': 0.5,
    'variety': 0.6,
    'dael': 0.7,
    'dael_confident': 0.75,
  }
  method = tiny.make_composition(('uniform', 'none', term, 'experts'))
  line = progress.progress_line(method, 7, 100, metrics)
  assert line.endswith(shown)


@pytest.mark.parametrize(
  ('seconds', 'shown'),
  [(4, '4s'), (75, '1m15s'), (3700, '1h01m'), (float('inf'), '?')],
)
def test_durations(seconds, shown):
  assert progress.format_duration(seconds) == shown
