"""One table over several experiments' compositions."""

import pytest

from experiments import together
from moda_jax.errors import UserError

HEADER = 'composition,target,seed,accuracy,difference,chosen by entropy'
ONE = ['moda_fm,a,0,50,0,0', 'fm,a,0,52,2,1', 'moda_fm,a,1,50,0,1']
ONE += ['fm,a,1,51,1,0', 'moda_fm,b,0,60,0,1', 'fm,b,0,57,-3,0']
OTHER = ['moda_fm,c,0,70,0,0', 'fm,c,0,,,0', 'dann,c,0,74,4,1']


@pytest.fixture
def results(tmp_path):
  for name, lines in (('one', ONE), ('other', OTHER)):
    path = tmp_path / f'compositions_{name}.csv'
    path.write_text('\n'.join([HEADER, *lines]) + '\n')
  return tmp_path


def read_rows(path):
  rows = [
    [cell.strip() for cell in line.strip('|').split('|')]
    for line in path.read_text().splitlines()
    if line.startswith('| `')
  ]
  return {row[0]: row[1:] for row in rows}


def test_columns_of_all_experiments_are_averaged(results):
  path = together.write(['one', 'other'], results)
  rows = read_rows(path)
  assert rows['`fm`'] == ['+1.5', '-3.0', '–', '-0.8 ± 2.2', '2']
  assert rows['`dann`'] == ['–', '–', '+4.0', '+4.0', '1']
  assert rows['`moda_fm`'][:3] == ['+0.0'] * 3
  # Chosen at a: fm's +2 at seed 0, MODA-FM at seed 1.
  assert rows['`entropy`'] == ['+1.0', '+0.0', '+4.0', '+1.7 ± 1.2', '3']
  assert list(rows) == ['`moda_fm`', '`fm`', '`dann`', '`entropy`']


def test_a_missing_table_is_named(results):
  with pytest.raises(UserError, match=r'compositions_none\.csv cannot be read'):
    together.write(['one', 'none'], results)
