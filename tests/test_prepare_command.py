"""The command `python -m moda_jax.prepare`, in processes of its own."""

import os
import signal
import subprocess
import sys

import made_up_files
import pytest
import tensorflow_datasets as tfds

from moda_jax import prepare
from moda_jax.datasets import preparation


def _command(*arguments, **environment):
  return {
    'args': [sys.executable, '-m', 'moda_jax.prepare', *map(str, arguments)],
    'cwd': made_up_files.ROOT,
    'env': os.environ | environment,
    'text': True,
    'stdout': subprocess.PIPE,
    'stderr': subprocess.PIPE,
  }


def test_the_command_line_ends_with_a_message_and_status_two(tmp_path):
  done = subprocess.run(
    **_command('reviews', f'--manual_dir={tmp_path / "gone"}'), check=False
  )
  assert done.returncode == 2
  assert done.stderr == f'--manual_dir={tmp_path / "gone"} is not a folder.\n'
  done = subprocess.run(**_command('nothing'), check=False)
  assert done.returncode == 2
  assert 'invalid choice' in done.stderr


@pytest.mark.slow
def test_the_environment_names_the_data_dir_and_its_manual_dir(tmp_path):
  manual_dir = tmp_path / 'downloads' / 'manual'
  made_up_files.write_reviews(manual_dir / 'amazon.npz')
  done = subprocess.run(
    **_command('reviews', TFDS_DATA_DIR=str(tmp_path)), check=False
  )
  assert (done.returncode, done.stderr) == (0, '')
  assert 'reviews/books: prepared (' in done.stdout
  assert (tmp_path / 'amazon_reviews' / 'books').is_dir()


def test_a_killed_preparation_leaves_no_data_set_and_is_made_good(
  tmp_path,
):
  """Killed with a picture half read, then run again."""
  manual_dir = tmp_path / 'manual'
  files = made_up_files.office31_files()
  made_up_files.pack(files, 'zip', manual_dir, 'office31')
  data_dir = tmp_path / 'data'
  program = """
import os, sys, time
from moda_jax import prepare
from moda_jax.files import images

decode, decoded = images.decode, []

def decode_three(data, name):
  decoded.append(name)
  if len(decoded) > 3:
    os.write(1, b'half way\\n')
    time.sleep(60)
  return decode(data, name)

images.decode = decode_three
prepare.main(sys.argv[1:])
"""
  arguments = [
    'office31',
    f'--manual_dir={manual_dir}',
    f'--data_dir={data_dir}',
  ]
  command = _command() | {'args': [sys.executable, '-c', program, *arguments]}
  folder = data_dir / 'office31' / 'amazon'
  with subprocess.Popen(**command) as process:
    printed = process.stdout.readline()
    process.send_signal(signal.SIGKILL)
  assert printed == 'half way\n'
  assert list(folder.glob('incomplete.*'))
  assert not (folder / '1.0.0').exists()
  prepare.main(arguments)
  assert [path.name for path in folder.iterdir()] == ['1.0.0']
  loaded = tfds.load(
    'office31/amazon', split='train', data_dir=data_dir, download=False
  )
  assert len(list(loaded)) == 6


def test_an_interrupted_preparation_says_so_and_leaves_nothing(tmp_path):
  """Ctrl-C, which a terminal sends to all of the command's processes."""
  (tmp_path / 'manual').mkdir()
  data_dir = tmp_path / 'data'
  program = f"""
import os, signal, sys
from moda_jax import prepare
from moda_jax.datasets.synth_digits import regenerated

# A shell's background jobs, and all that they start, ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
read = regenerated._read_png

def read_some(worker):
  png = read(worker)
  os.write(1, b'drawing\\n')
  return png

regenerated._read_png = read_some
sys.argv[1:] = [
  'digits', '--manual_dir={tmp_path}/manual', '--data_dir={data_dir}'
]
prepare.run()
"""
  command = _command() | {'args': [sys.executable, '-c', program]}
  with subprocess.Popen(**command, process_group=0) as process:
    while process.stdout.readline() not in ('drawing\n', ''):
      pass
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate()
  assert (process.returncode, errors) == (130, 'interrupted\n')
  assert not made_up_files.leftovers(data_dir)


def test_two_preparations_do_not_write_to_one_place(tmp_path):
  with preparation.lock(tmp_path / 'data'):
    done = subprocess.run(
      **_command('mini', f'--data_dir={tmp_path / "data"}'), check=False
    )
  assert done.returncode == 2
  assert 'another preparation is writing to' in done.stderr
