"""The tables of methods: ours beside the paper's figures."""

import pathlib

import pytest

from experiments.figures import method_table, style
from experiments.figures.method_figure import draw_table
from experiments.figures.published import published, published_methods
from experiments.runs import records
from experiments.runs.scales import SETTINGS, find_setting
from moda_jax.objectives import METHODS
from moda_jax.training.config_files import get_config

ROOT = pathlib.Path(__file__).parents[1]
NAMES = {setting.name: setting for setting in SETTINGS.values()}
RESULTS = [
  path
  for path in sorted((ROOT / 'experiments' / 'results').glob('*.jsonl'))
  if path.stem in NAMES
]


@pytest.mark.parametrize('path', RESULTS, ids=lambda path: path.stem)
def test_committed_tables_are_what_their_lines_give(path):
  setting = NAMES[path.stem]
  table = method_table.make_table(setting, records.read_lines(path))
  for kind, text in (
    ('.md', method_table.format_markdown(table)),
    ('.tex', method_table.format_latex(table)),
  ):
    assert path.with_suffix(kind).read_text() == text
    assert setting.scale in text
  assert path.with_suffix('.png').exists()


def test_the_readme_has_the_committed_means_of_reviews():
  table = ROOT / 'experiments' / 'results' / 'reviews_paper.md'
  means = _first_method_and_last_cell(table.read_text().split('Target ')[0])
  told = _first_method_and_last_cell((ROOT / 'README.md').read_text())
  assert len(means) >= 9
  assert means == {method: told[method] for method in means}


def _first_method_and_last_cell(text: str) -> dict[str, str]:
  rows = [row for row in text.splitlines() if row.startswith('| `')]
  cells = [[cell.strip() for cell in row.split('|')[1:-1]] for row in rows]
  return {row[0].split('`')[1]: row[-1] for row in cells if '=' not in row[0]}


def test_the_paper_s_figures_are_found():
  assert published('reviews', 'moda_fm', 'books') == (80.9, 1.1)
  assert published('office31', 'mada_ss', 'webcam') == (97.4, 0.1)
  assert published('reviews', 'mada_ss', 'books') is None
  assert 'mada_ss' in published_methods('office31')
  assert 'mada_ss' not in published_methods('digits')


def test_every_method_has_a_look_of_its_own():
  assert set(style.METHOD_NAMES) == set(METHODS)
  looks = [style.method_look(method)[1:3] for method in METHODS]
  assert len(set(looks)) == len(looks)


def make_line(setting, target, method, seed, accuracy, values=''):
  config = get_config(f'{setting.config}:{target},method={method}{values}')
  return {
    'target': target,
    'method': method,
    'seed': seed,
    'sources': list(config.data.sources),
    'accuracy': accuracy,
    'seconds': None,
    'train_seconds': 90.0,
    'caution': 'mind',
    'config': records.flat_config(config),
  }


def test_ours_and_the_paper_s_are_side_by_side():
  setting = find_setting('reviews', 'paper')
  figures = {
    ('books', 'moda_fm'): (0.80, 0.82),
    ('books', 'mada'): (0.7,),
    ('books', 'fm'): (0.6,),
    ('dvd', 'moda_fm'): (0.83,),
    ('dvd', 'mada'): (0.8,),
  }
  lines = [
    make_line(setting, *key, seed, accuracy)
    for key, accuracies in figures.items()
    for seed, accuracy in enumerate(accuracies)
  ]
  table = method_table.make_table(setting, lines)
  text = method_table.format_markdown(table)
  assert '| method | books | dvd | mean |' in text
  assert (
    '(1 to 2 seeds) | 81.0 ± 1.4 (80.9) | 83.0 (82.0) | 82.0 (81.5) |' in text
  )
  assert '| `mada` | 70.0 | 80.0 | 75.0 |' in text
  assert '| `fm` | 60.0 (78.8) |  (81.0) |  |' in text
  assert '(1 to 2 seeds) | 81.0 ± 1.4 | 80.9 ± 1.1 | 2 | 1.5 | mind |' in text
  latex = method_table.format_latex(table)
  assert r'(1 to 2 seeds) & 81.0 $\pm$ 1.4 (80.9) & 83.0 (82.0) \\' in latex
  assert len(draw_table(table).axes) == 2


def read_times(*runs):
  """Returns the header and cells of times of runs, each of another method."""
  lines = []
  for method, (values, times) in zip(METHODS, runs, strict=False):
    setting = find_setting('reviews', 'paper')
    line = make_line(setting, 'books', method, 0, 0.8, values)
    lines.append({**line, **times})
  text = method_table.format_markdown(method_table.make_table(setting, lines))
  cells = [row.split(' | ') for row in text.split('Target')[1].splitlines()]
  return [row[4] for row in cells if len(row) > 4]


def test_the_time_is_that_of_a_seed_and_the_header_says_of_what():
  training = {'train_seconds': 60.0, 'seconds': 900.0}
  process = {'train_seconds': None, 'seconds': 600.0}
  assert read_times(('', training), (',seeds=5', training)) == [
    *('minutes of training', '1.0', '0.2')
  ]
  assert read_times(('', process)) == ['minutes of the process', '10.0']
  assert read_times(('', training), ('', process)) == [
    *(r'minutes of training, or \* of the process', '1.0', r'10.0 \*')
  ]
  unknown = {'train_seconds': None, 'seconds': None}
  assert read_times(('', unknown)) == ['minutes of training', '']


@pytest.mark.parametrize(
  'value', ['target_term=fixmatch+mcc', 'sam_rho=0.05', 'mu_c=0.5', 'epochs=3']
)
def test_runs_at_other_values_have_no_figure_of_the_paper(value):
  setting = find_setting('reviews', 'paper')
  line = make_line(setting, 'books', 'moda_fm', 0, 0.8, f',{value}')
  table = method_table.make_table(setting, [line])
  (row,) = table.rows
  assert row.values
  assert table.published(row, 'books') is None
  for text in (
    method_table.format_markdown(table),
    method_table.format_latex(table),
    ','.join(map(str, next(method_table._csv_rows(table)))),
  ):
    assert '80.9' not in text
  (axes,) = draw_table(table).axes
  assert not [line for line in axes.lines if 80.9 in line.get_xdata()]


def test_learned_views_have_no_figure_of_the_paper():
  setting = find_setting('digits', 'paper')
  line = make_line(setting, 'mnistm', 'moda_fm', 0, 0.8, ',strong=learned')
  table = method_table.make_table(setting, [line])
  assert table.published(table.rows[0], 'mnistm') is None


def test_length_and_seeds_are_in_the_title_and_rows_name_others():
  setting = find_setting('reviews', 'paper')
  runs = [
    *((method, seed, '') for method in ('fm', 'moda') for seed in range(3)),
    ('moda_fm', 0, ',epochs=3'),
  ]
  lines = [
    make_line(setting, 'books', method, seed, 0.8, values)
    for method, seed, values in runs
  ]
  same = method_table.make_table(setting, lines[:-1])
  assert same.title == f'{setting.title}, 3 seeds'
  table = method_table.make_table(setting, lines)
  title = f'{setting.title}, 3 seeds; a row names what differs from this'
  assert '`moda_fm` (epochs=3; 1 seed)' in method_table.format_markdown(table)
  latex = method_table.format_latex(table)
  assert f'{{\\footnotesize {title}. Accuracy' in latex
  assert 'mean $\\pm$ standard deviation over seeds; in brackets' in latex
  figure = draw_table(table)
  assert figure.get_suptitle() == title
  labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
  assert labels == ['MODA', 'FM', 'MODA-FM\n(epochs=3; 1 seed)']


def test_points_have_the_markers_of_their_methods():
  setting = find_setting('reviews', 'paper')
  lines = [
    make_line(setting, 'books', method, 0, 0.8)
    for method in ('source_only', 'supervised')
  ]
  (axes,) = draw_table(method_table.make_table(setting, lines)).axes
  markers = {line.get_marker() for line in axes.lines if any(line.get_xdata())}
  assert markers >= {'s', 'D'}
