"""The studies: what they draw from runs, and the terms of the bound."""

import numpy as np
import pytest
from drawn import check_files, read_csv
from made_up_runs import write_run

from experiments import (
  demo,
  sensitivity,
  source_weights,
)
from experiments.figures import curves, style
from experiments.runs import command, descriptions, records, runner
from experiments.runs.scales import find_setting
from moda_jax.errors import UserError
from moda_jax.report import palette
from moda_jax.training.config_files import get_config

TINY = find_setting('digits', 'tiny')


def make_line(folder, argument, accuracy=0.6, **values):
  pairs = ','.join(f'{k}={v}' for k, v in TINY.values.items())
  write_run(folder, get_config(f'{argument},{pairs}'), accuracy, **values)
  (line,) = descriptions.describe_run(folder, TINY)
  return line


def test_sensitivity_has_a_curve_for_each_target(tmp_path):
  lines = [
    make_line(
      tmp_path / f'{target}{name}{value}{seed}',
      f'mini:{target},{name}={value},seed={seed}',
      accuracy,
    )
    for target in ('mnist', 'mnistm')
    for name, value, accuracy in [
      ('mu_s', 0.01, 0.3),
      ('mu_s', 0.5, 0.5),
      ('mu_c', 0.02, 0.2),
    ]
    for seed in (0, 1)
  ]
  files = sensitivity.draw(TINY, lines, tmp_path / 'drawn')
  check_files(files)
  rows = read_csv(files[-1])
  found = {(r['varied'], r['value'], r['target']): r for r in rows}
  assert set(found) == {
    ('mu_s', value, target)
    for value in ('0.01', '0.5')
    for target in ('mnist', 'mnistm')
  }  # a single value of μ_c is no curve
  row = found['mu_s', '0.5', 'mnistm']
  assert (float(row['accuracy']), row['seeds']) == (50.0, '2')
  with pytest.raises(UserError, match='No two of the runs differ in one μ'):
    sensitivity.draw(TINY, lines[:2], tmp_path / 'drawn')


def test_sensitivity_to_one_value_alone(study_flags, tmp_path):
  study_flags.targets = ['mnistm']
  requests = sensitivity.make_requests([], ['0.02', '0.5'])
  assert [r.config().objective.mu_c for r in requests] == [0.02, 0.5]
  lines = []
  for request in requests:
    write_run(request.folder, request.config())
    lines += descriptions.describe_run(request.folder, TINY)
  rows = read_csv(sensitivity.draw(TINY, lines, tmp_path / 'drawn')[-1])
  assert [row['varied'] for row in rows] == ['mu_c', 'mu_c']
  with pytest.raises(UserError, match='both empty: nothing is varied'):
    sensitivity.make_requests([], [])


def test_a_trend_leaves_out_the_start():
  epochs = np.arange(1, 9)
  values = np.where(epochs <= curves.SKIPPED, 0, 70 - 0.5 * epochs)
  slope, intercept = curves.fit_trend(epochs, values)
  assert slope == pytest.approx(-0.5)
  assert intercept == pytest.approx(70)
  assert curves.fit_trend(epochs[:3], values[:3]) is None


def test_over_training_has_slopes(tmp_path):
  lines = []
  for method, slope in (('mdan', -1.0), ('moda_fm', 0.0)):
    line = make_line(tmp_path / method, f'mini:mnistm,method={method}')
    steps = [6 * i for i in range(1, 9)]
    accuracies = [0.8 + slope * i / 100 for i in range(1, 9)]
    line['curve'] = {'step': steps, 'target/accuracy': accuracies}
    lines.append(line)
  files = curves.draw_accuracy(TINY, lines, tmp_path / 'drawn')
  check_files(files)
  slopes = {row['method']: float(row['slope']) for row in read_csv(files[-1])}
  assert slopes == pytest.approx({'mdan': -1.0, 'moda_fm': 0.0}, abs=1e-9)
  make_curve(lines[0], 0.5, 0.6, 0.7)
  files = curves.draw_accuracy(TINY, lines[:1], tmp_path / 'drawn')
  assert [row['slope'] for row in read_csv(files[-1])] == ['', '', '']


def make_curve(line, *accuracies):
  steps = [6 * i for i in range(1, len(accuracies) + 1)]
  line['curve'] = {'step': steps, 'target/accuracy': accuracies}
  return line


def test_runs_at_other_values_have_a_curve_of_their_own(tmp_path):
  given = [('', 0.1), ('', 0.5), (',seed=1', 0.7), (',mu_s=0.4', 0.9)]
  lines = [
    make_curve(
      make_line(tmp_path / str(number), f'mini:synth{values}'), *[accuracy] * 4
    )
    for number, (values, accuracy) in enumerate(given)
  ]
  files = curves.draw_accuracy(TINY, lines, tmp_path / 'drawn')
  rows = read_csv(files[-1])
  found = {
    row['values']: (row['seeds'], float(row['accuracy'])) for row in rows
  }
  # Of the two lines of seed 0 the last one counts.
  assert found == {
    '': ('2', pytest.approx(60)),
    'mu_s=0.4': ('1', pytest.approx(90)),
  }
  assert {row['target'] for row in rows} == {'synth'}  # not the setting's
  make_curve(lines[1], *[0.5] * 5)
  with pytest.raises(UserError, match='moda_fm on synth were evaluated at'):
    curves.draw_accuracy(TINY, lines, tmp_path / 'drawn')


def test_a_value_that_all_curves_share_is_named(tmp_path, monkeypatch):
  line = make_line(tmp_path, 'mini:synth,mu_s=0.4,steps=24')
  names, draw_method = [], curves._draw_method

  def keep(axes, method, epochs, values, name):
    names.append(name)
    return draw_method(axes, method, epochs, values, name)

  monkeypatch.setattr(curves, '_draw_method', keep)
  curves.draw_accuracy(TINY, [make_curve(line, *[0.5] * 4)], tmp_path / 'drawn')
  assert names == ['\n(mu_s=0.4)']  # the length is in the title


def spy_on_titles(monkeypatch):
  titles, make_panels = [], style.make_panels

  def keep(count, title, *args, **options):
    titles.append(title)
    return make_panels(count, title, *args, **options)

  monkeypatch.setattr(style, 'make_panels', keep)
  return titles


def test_source_weights_are_those_of_the_longest_run(tmp_path, monkeypatch):
  lines = []
  for number, values in enumerate(
    [{'steps': 3}, {'mu_s': 0.4}, {}, {'seed': 1}, {'steps': 12}]
  ):
    alpha = {f'alpha/{n}': number / 10 for n in ('mnist', 'uci', 'synth')}
    pairs = ','.join(f'{k}={v}' for k, v in {**TINY.values, **values}.items())
    config, folder = get_config(f'mini:mnistm,{pairs}'), tmp_path / str(number)
    write_run(folder, config, **alpha)
    lines += descriptions.describe_run(folder, TINY)
  titles = spy_on_titles(monkeypatch)
  for count, drawn in (2, '0.1'), (4, '0.2'), (5, '0.4'):
    files = curves.draw_source_weights(TINY, lines[:count], tmp_path / 'drawn')
    assert {row['alpha'] for row in read_csv(files[-1])} == {drawn}
  assert len(titles) == 3
  assert all("β moves at 0.1 of the paper's rate" in title for title in titles)
  lines[4]['config']['optimizer.beta_rate'] = 1.0
  curves.draw_source_weights(TINY, lines, tmp_path / 'drawn')
  assert 'β moves' not in titles[-1]


def test_source_weights_are_those_of_moda_fm(tmp_path):
  alpha = {'alpha/mnist': 0.2, 'alpha/uci': 0.3, 'alpha/synth': 0.5}
  lines = [
    make_line(tmp_path / m, f'mini:mnistm,method={m}', **a)
    for m, a in (('moda_fm', alpha), ('fm', {}))
  ]
  files = curves.draw_source_weights(TINY, lines, tmp_path / 'drawn')
  check_files(files)
  rows = read_csv(files[-1])
  assert {(r['source'], r['alpha']) for r in rows} == {
    ('mnist', '0.2'),
    ('uci', '0.3'),
    ('synth', '0.5'),
  }
  assert [float(r['epoch']) for r in rows][:3] == pytest.approx(
    [1 / 3, 2 / 3, 1]
  )
  with pytest.raises(UserError, match='None of the runs has a curve of alpha'):
    curves.draw_source_weights(TINY, lines[1:], tmp_path / 'drawn')


def test_mu_s_by_target():
  assert source_weights.parse_pairs(['mnist:0.1', 'svhn:0.9']) == {
    'mnist': '0.1',
    'svhn': '0.9',
  }
  with pytest.raises(UserError, match='must be target:value'):
    source_weights.parse_pairs(['0.1'])
  source_weights.check_targets(['mnist'], ['mnist', 'svhn'])
  with pytest.raises(
    UserError, match="names 'mnitm'; the targets are mnist, s"
  ):
    source_weights.check_targets(['mnist', 'mnitm'], ['mnist', 'svhn'])


def test_a_study_trains_records_and_draws(study_flags, tmp_path, monkeypatch):
  trained = []

  def pretend(requests, path, slots, known):
    del slots, known
    for request in requests:
      trained.append(request)
      write_run(request.folder, request.config())
      records.append_lines(
        path, descriptions.describe_run(request.folder, TINY)
      )

  monkeypatch.setattr(command, 'train_missing', pretend)
  assert command.train_missing is not runner.train_missing
  requests = command.request_runs(['moda_fm'], ['mu_s=0.3'], ['mnistm'])
  seen = []

  def draw(setting, lines, path):
    seen.append((setting, len(lines), path.name))
    return []

  command.run_study('sensitivity', requests, draw)
  assert [r.config().objective.mu_s for r in trained] == [0.3]
  study_flags.render_only = True
  command.run_study('sensitivity', requests, draw)
  assert len(trained) == 1
  assert seen == [(TINY, 1, 'sensitivity_digits_tiny')] * 2
  other = command.request_runs(['moda_fm'], ['mu_s=0.5'], ['mnistm'])
  with pytest.raises(UserError, match='has no runs to show yet'):
    command.run_study('sensitivity', other, draw)
  study_flags.render_only = False
  command.run_study('sensitivity', other, draw)
  assert len(trained) == 2
  assert seen[2:] == seen[:1]  # without the run at μ_s = 0.3
  study_flags.render_only = True
  with pytest.raises(UserError, match='has no runs to show yet'):
    command.run_study('other', requests, draw)


def test_given_lines_are_those_of_the_setting(study_flags, tmp_path):
  arguments = ['mnistm', 'mnistm,mu_s=0.4', 'mnist', 'mnistm,method=fm']
  lines = [
    make_line(tmp_path / str(number), f'mini:{argument}')
    for number, argument in enumerate(arguments)
  ]
  path = tmp_path / 'given.jsonl'
  study_flags.lines = str(path)
  requests = command.request_runs(['moda_fm'], targets=['mnistm'])
  drawn = []

  def draw(setting, lines, path):
    drawn.extend(lines)
    return []

  def run():
    command.run_study('overtraining', requests, draw)

  with pytest.raises(UserError, match=r'given.jsonl: there is no such file'):
    run()
  records.append_lines(path, lines)
  run()  # with the values of any run, not only the requested ones
  assert drawn == lines[:2]
  other = {**lines[0], 'experiment': 'office31', 'scale': 'features'}
  records.append_lines(path, [other])
  with pytest.raises(
    UserError, match=r'line 5 .* set --experiment=office31 --scale=features'
  ):
    run()
  path.unlink()
  records.append_lines(path, lines[2:])
  with pytest.raises(UserError, match='no run of moda_fm towards mnistm'):
    run()


def test_the_demo_draws_both_runs_in_the_colours_of_all_figures(
  tmp_path, monkeypatch
):
  for method, accuracy in (('source_only', 0.6), ('moda_fm', 0.7)):
    config = get_config(f'mini:mnistm,method={method},steps=3000')
    write_run(tmp_path / method, config, accuracy)
  drawn = []

  def keep(figure, path):
    drawn.append(figure)
    return save(figure, path)

  save = style.save
  monkeypatch.setattr(style, 'save', keep)
  files = demo.draw(tmp_path)
  assert files[0] == tmp_path / 'demo.png'
  assert files[0].stat().st_size
  (figure,) = drawn
  assert figure.get_suptitle() == 'mini digits, target mnistm, 3,000 steps'
  lines = figure.axes[0].get_lines()
  assert [line.get_color() for line in lines] == [
    palette.BLACK,
    palette.VERMILION,
  ]
  assert [line.get_ydata()[-1] for line in lines] == pytest.approx([60, 70])


def test_a_figure_is_the_same_file_every_time(tmp_path):
  def save(name):
    figure, (axes,) = style.make_panels(1, 'title')
    axes.plot([1, 2])
    return [path.read_bytes() for path in style.save(figure, tmp_path / name)]

  assert save('a') == save('b')
