import os
import subprocess
import sys

import pytest

from moda_jax.files.atomic import write_whole


def write_half(path):
  with write_whole(path) as file:
    file.write('after')
    raise ValueError('half way')


def test_what_was_there_stays_when_writing_fails(tmp_path):
  path = tmp_path / 'table.csv'
  path.write_text('before')
  with pytest.raises(ValueError, match='half way'):
    write_half(path)
  assert path.read_text() == 'before'
  assert list(tmp_path.iterdir()) == [path]


def test_text_is_utf_8_in_any_locale(tmp_path):
  path = tmp_path / 'labels.csv'
  code = (
    'import sys; from moda_jax.files.atomic import write_whole\n'
    r"with write_whole(sys.argv[1]) as file: file.write('F\u00fc\u00dfe')"
  )
  environment = os.environ | {
    'LC_ALL': 'C',
    'PYTHONUTF8': '0',
    'PYTHONCOERCECLOCALE': '0',
  }
  subprocess.run(
    [sys.executable, '-c', code, path], env=environment, check=True
  )
  assert path.read_bytes() == 'Füße'.encode()
