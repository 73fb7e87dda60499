"""The benchmark: its twins compute what we compute, and its figures add up."""

import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from experiments.benchmark import (
  equality,
  flops,
  growth,
  machine,
  plot,
  report,
  roofline,
  rounds,
  settings,
  twin_client,
)
from moda_jax.data.load import load_for_each

ROOT = pathlib.Path(__file__).parents[1]
SMALL = {
  'digits': settings.Case('', 'digits', 'mnistm,width=0.06', 32),
  'reviews': settings.Case('', 'reviews', 'books,width=0.1', 32),
  'office31': settings.Case(
    '', 'office31', 'webcam,pretrained=,width=0.07,image_size=64', 32
  ),
}


@pytest.mark.skipif(
  not twin_client.PYTHON.is_file(), reason='PyTorch is not installed'
)
@pytest.mark.parametrize('name', SMALL)
def test_the_twins_have_our_loss_and_gradients(name, tmp_path):
  found = equality.check(SMALL[name], str(twin_client.PYTHON), tmp_path)
  assert set(found) == {'as written', 'tuned'}
  equality.require(found)


@pytest.mark.parametrize('values', [(1e-6, 0.5), (np.nan, 0.0), (0.1, 0.0)])
def test_another_loss_is_told(values):
  found = dict(zip(('loss', 'gradient'), values, strict=True), of='beta')
  with pytest.raises(AssertionError, match='twin tuned computes something'):
    equality.require({'tuned': found})


def test_products_are_counted():
  def loss(a, b):
    return jnp.sum(jnp.tanh(a @ b))

  a, b = jnp.ones((3, 5)), jnp.ones((5, 7))
  assert flops.count_function(loss, a, b) == 2 * 3 * 5 * 7
  both = jax.grad(loss, argnums=(0, 1))
  assert flops.count_function(both, a, b) == 3 * 2 * 3 * 5 * 7


def test_of_a_scan_every_turn_is_counted_and_of_a_choice_one_branch():
  a = jnp.ones((4, 4))

  def repeat(a):
    return jax.lax.scan(lambda x, _: (x @ a, None), a, length=6)[0]

  def choose(a):
    return jax.lax.cond(a[0, 0] > 0, lambda x: x @ x, lambda x: x, a)

  assert flops.count_function(repeat, a) == 6 * 2 * 4**3
  assert flops.count_function(choose, a) == 2 * 4**3


@pytest.mark.parametrize('stride', [1, 2])
def test_convolutions_are_counted_without_padding(stride):
  def convolve(x, kernel):
    return jax.lax.conv_general_dilated(
      x,
      kernel,
      (stride, stride),
      ((1, 1), (1, 1)),
      dimension_numbers=('NHWC', 'HWIO', 'NHWC'),
    )

  x, kernel = jnp.ones((2, 6, 6, 3)), jnp.ones((3, 3, 3, 5))
  # With ones everywhere the sum of the output is how many products there are.
  expected = 2 * int(convolve(x, kernel).sum())
  assert flops.count_function(convolve, x, kernel) == expected
  for argument in (0, 1):
    # The convolution itself, and a gradient that meets the same pairs.
    grad = jax.grad(lambda *args: convolve(*args).sum(), argnums=argument)
    assert flops.count_function(grad, x, kernel) == 2 * expected


def test_a_round_before_the_first_is_not_counted():
  figures = iter(range(8))
  found = rounds.take_turns(
    {'a': lambda: next(figures), 'b': lambda: next(figures)}, 3
  )
  assert found == {'a': [2, 4, 6], 'b': [3, 5, 7]}
  ratio = rounds.compare(found['b'], found['a'])
  assert (ratio['median'], ratio['most']) == (5 / 4, 3 / 2)
  assert rounds.show(rounds.summarise([1.0, 3.0, 2.0])) == '2.0 (1.0–3.0)'


def test_what_a_step_costs_anyway_is_no_deviation():
  assert growth.find_deviation([24, 40, 80], [3.4, 5.0, 9.0]) < 1e-9
  assert growth.find_deviation([24, 40, 80], [3.4, 7.0, 9.0]) > 0.1


def test_the_share_of_the_roofline():
  rates = {roofline.PRODUCT: {'best': 1e9}, roofline.TRIAD: {'best': 28e6}}
  found = roofline.find_share(rates, 5 * 10**8, 10**6, 3.0)
  assert found['products_seconds'] == 0.5
  assert found['memory_seconds'] == 1.0  # 7 × 4 MB
  assert found['share'] == 0.5


def test_made_up_sources_are_the_config_s():
  config = settings.make_config('digits', 'mnistm,width=0.5', sources=8)
  domains = settings.make_domains(config, 'digits', 4)
  assert len(settings.get(config, 'sources')) == len(domains.sources) == 8
  assert settings.get(config, 'width') == 0.5


@pytest.mark.parametrize('case', settings.CASES.values(), ids=settings.CASES)
def test_random_examples_are_as_many_as_a_case_draws(case):
  domains = settings.make_domains(case.config, case.family, case.examples)
  (drawn,) = load_for_each([case.config], domains)
  assert {d.size for d in (*drawn.sources, drawn.target)} == {case.examples}


def make_results():
  figure = {'median': 0.2, 'least': 0.1, 'most': 0.3, 'rounds': 3}
  ratio = {'median': 2.5, 'least': 2.0, 'most': 3.0, 'rounds': 3}
  names = ('moda_jax, live', 'PyTorch tuned, kept batch')
  share = roofline.find_share(
    {roofline.PRODUCT: {'best': 1e9}, roofline.TRIAD: {'best': 1e9}},
    10**8,
    1000,
    0.2,
  )
  case = {
    'title': 'digits',
    'images_per_step': 40,
    'seconds': dict.fromkeys(names, figure),
    'against_live': dict.fromkeys(names, ratio),
    'checks': {'tuned': {'loss': 1e-7, 'gradient': 2e-5, 'of': 'beta'}},
    'rates': {roofline.PRODUCT: {'best': 1e9}, roofline.TRIAD: {'best': 1e9}},
    'roofline': share,
  }
  here = machine.describe_machine()
  return {'parts': {'digits': {'quick': True, 'machine': here, 'found': case}}}


def test_the_report_has_ratio_and_share(tmp_path):
  text = report.format_report(make_results())
  assert '| digits | 200.0 (100.0–300.0) | 2.50 (2.00–3.00) × | 50 % |' in text
  assert text.count('## On ') == 1
  assert 'gradients to 2.0e-05 (largest: `beta`)' in text
  plot.write_plot(
    tmp_path / 'plot.png',
    {'digits': make_results()['parts']['digits']['found']},
  )
  with Image.open(tmp_path / 'plot.png') as image:
    assert image.width > 1000


def test_no_line_crosses_the_times_of_the_steps():
  """Neither that at 1, nor an error bar, nor the frame."""
  case = make_results()['parts']['digits']['found']
  short = {'median': 0.7, 'least': 0.6, 'most': 0.8}
  case['against_live'] |= {'PyTorch tuned, kept batch': short}
  figure = plot.make_figure({'digits': case})
  figure.draw_without_rendering()
  axes = figure.axes[0]
  frame = axes.get_window_extent()
  for text, end in zip(axes.texts, (3.0, 1.0), strict=True):
    assert text.get_text() == '200 ms'
    box = text.get_window_extent()
    assert box.x0 > axes.transData.transform((end, 0))[0]
    assert box.x1 < frame.x1


def test_parts_of_two_machines_say_so():
  results = make_results()
  other = results['parts']['digits'] | {
    'machine': machine.describe_machine() | {'cpu': 'Another'}
  }
  results['parts']['digits_quarter'] = other
  text = report.format_report(results)
  assert text.count('## On ') == 2
  assert '## On Another' in text


@pytest.mark.parametrize(
  ('argument', 'message'),
  [
    ('--parts=digits,digit', '--parts names digit; known are digits, '),
    ('--torch_python=nowhere', "--torch_python='nowhere' is not there"),
  ],
)
@pytest.mark.slow
def test_what_cannot_be_measured_is_refused(argument, message):
  done = subprocess.run(
    [sys.executable, '-m', 'experiments.benchmark', argument]
    + (['--torch_python='] if 'parts' in argument else []),
    cwd=ROOT,
    capture_output=True,
    text=True,
    timeout=120,
  )
  assert done.returncode == 2
  assert done.stderr.startswith(message)
