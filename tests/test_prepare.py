"""Preparation: what is there, what is not, again, and when it breaks."""

import pathlib
import re

import made_up_files
import numpy as np
import pytest
import tensorflow_datasets as tfds

from moda_jax import prepare
from moda_jax.datasets import checksums, preparation
from moda_jax.datasets.synth_digits import regenerated
from moda_jax.errors import UserError


@pytest.fixture(autouse=True)
def few_regenerated(monkeypatch):
  monkeypatch.setattr(regenerated, 'COUNTS', {'train': 20, 'test': 10})


@pytest.fixture
def manual_dir(tmp_path):
  return made_up_files.write_all_but_synth_digits(tmp_path / 'manual')


def _prepare(what, manual_dir, data_dir, capsys):
  """Runs it and returns the table as {(domain, split): row}."""
  prepare.main([what, f'--manual_dir={manual_dir}', f'--data_dir={data_dir}'])
  return _table(capsys.readouterr().out)


def _table(printed):
  _, table = re.split(r'domain .*status\n', printed)
  rows = {}
  for line in table.split('\n\n')[0].splitlines():
    cells = re.split(r'\s{2,}', line.strip())
    rows[cells[0], cells[1]] = line
  return rows


def test_digits(manual_dir, tmp_path, capsys):
  rows = _prepare('digits', manual_dir, tmp_path / 'data', capsys)
  assert len(rows) == 8
  mnist = rows['digits/mnist', 'train']
  assert 'mnist_idx: mnist/train-images-idx3-ubyte.gz' in mnist
  assert 'prepared; subset: 30 of 60,000' in mnist
  digest = checksums.sha256(manual_dir / 'mnist_m' / 'mnist_m.tar.gz')
  assert f'  {digest[:12]}  ' in rows['digits/mnistm', 'test']
  assert 'subset: 10 of 26,032' in rows['digits/svhn', 'test']
  assert 'REGENERATED from fonts' in rows['digits/synth', 'train']
  for name, count in (
    ('mnist_idx', 30), ('mnist_m/original', 12), ('svhn_mat', 20),
    ('synth_digits/regenerated', 20),
  ):  # fmt: skip
    loaded = tfds.load(name, split='train', data_dir=tmp_path / 'data')
    assert len(list(loaded)) == count


@pytest.mark.slow
def test_the_missing_original_is_named_beside_the_regenerated_set(
  manual_dir, tmp_path, capsys
):
  arguments = [f'--manual_dir={manual_dir}', f'--data_dir={tmp_path / "data"}']
  prepare.main(['digits', *arguments])
  printed = capsys.readouterr().out
  assert 'digits/synth: REGENERATED from fonts, not the original' in printed
  assert 'missing: synth_train_32x32.mat, synth_test_32x32.mat' in printed
  assert str(manual_dir / 'synth_digits') in printed


def test_the_original_of_synth_digits_is_preferred(
  manual_dir, tmp_path, capsys
):
  for split in ('train', 'test'):
    path = manual_dir / f'synth_{split}_32x32.mat'
    made_up_files.write_mat_digits(path, 10, np.arange(10))
  rows = _prepare('digits', manual_dir, tmp_path / 'data', capsys)
  assert 'synth_digits/original: synth_train' in rows['digits/synth', 'train']
  assert 'subset: 10 of 479,400' in rows['digits/synth', 'train']
  assert not (tmp_path / 'data/synth_digits/regenerated').exists()


def test_mnist_m_is_rebuilt_from_photographs(manual_dir, tmp_path, capsys):
  (manual_dir / 'mnist_m' / 'mnist_m.tar.gz').unlink()
  photograph = made_up_files.random_image(0, (90, 80, 3))
  (manual_dir / 'photographs').mkdir()
  (manual_dir / 'photographs' / 'a.jpg').write_bytes(
    made_up_files.encode(photograph, 'JPEG')
  )
  rows = _prepare('digits', manual_dir, tmp_path / 'data', capsys)
  assert 'REBUILT with your photographs' in rows['digits/mnistm', 'train']


def test_office31_and_reviews(manual_dir, tmp_path, capsys):
  rows = _prepare('office31', manual_dir, tmp_path / 'data', capsys)
  assert list(rows) == [
    (f'office31/{domain}', 'train') for domain in ('amazon', 'dslr', 'webcam')
  ]
  assert re.search(r' 6 +31 ', rows['office31/dslr', 'train'])
  rows = _prepare('reviews', manual_dir, tmp_path / 'data', capsys)
  assert re.search(r' 5 +2 ', rows['reviews/electronics', 'train'])


@pytest.mark.slow
def test_a_second_run_prepares_nothing(manual_dir, tmp_path, capsys):
  data_dir = tmp_path / 'data'
  first = _prepare('digits', manual_dir, data_dir, capsys)
  written = {
    path: path.stat().st_mtime_ns for path in data_dir.rglob('*.tfrecord*')
  }
  again = _prepare('digits', manual_dir, data_dir, capsys)
  assert written == {
    path: path.stat().st_mtime_ns for path in data_dir.rglob('*.tfrecord*')
  }
  assert first.keys() == again.keys()
  for key, row in again.items():
    assert 'already prepared;' in row
    words = row.replace('already prepared', 'prepared').split()
    assert words == first[key].split()


def test_what_is_prepared_needs_no_file_any_more(manual_dir, tmp_path, capsys):
  _prepare('reviews', manual_dir, tmp_path / 'data', capsys)
  (manual_dir / 'reviews' / 'amazon.npz').unlink()
  rows = _prepare('reviews', manual_dir, tmp_path / 'data', capsys)
  assert 'reviews/amazon.npz' in rows['reviews/books', 'train']
  assert 'already prepared' in rows['reviews/books', 'train']


@pytest.mark.slow
def test_a_file_damaged_after_preparation_does_no_harm(
  manual_dir, tmp_path, capsys
):
  _prepare('digits', manual_dir, tmp_path / 'data', capsys)
  (manual_dir / 'mnist' / 'train-images-idx3-ubyte.gz').write_bytes(b'')
  rows = _prepare('digits', manual_dir, tmp_path / 'data', capsys)
  assert 'already prepared; subset: 30 of' in rows['digits/mnist', 'train']


def test_other_files_than_those_prepared_are_noticed(
  manual_dir, tmp_path, capsys
):
  _prepare('reviews', manual_dir, tmp_path / 'data', capsys)
  made_up_files.write_reviews(manual_dir / 'reviews/amazon.npz', (9, 9, 9, 9))
  rows = _prepare('reviews', manual_dir, tmp_path / 'data', capsys)
  row = rows['reviews/books', 'train']
  assert 'from other files than those there now: delete' in row
  assert str(tmp_path / 'data/amazon_reviews/books/1.0.0') in row


def test_a_changed_file_with_the_right_counts_is_told_apart(
  manual_dir, tmp_path, capsys, monkeypatch
):
  for domain, size in zip(
    ('books', 'dvd', 'electronics', 'kitchen'), (4, 3, 5, 2), strict=True
  ):
    counts = {'train': size}
    monkeypatch.setitem(
      checksums.ORIGINAL_COUNTS, f'amazon_reviews/{domain}', counts
    )
  rows = _prepare('reviews', manual_dir, tmp_path / 'data', capsys)
  row = rows['reviews/books', 'train']
  assert row.endswith(' prepared; counts match, the checksum does not')
  # Known from now on, it is known of what was prepared before.
  digest = checksums.sha256(manual_dir / 'reviews' / 'amazon.npz')
  monkeypatch.setattr(checksums, 'REVIEWS_SHA256', digest)
  rows = _prepare('reviews', manual_dir, tmp_path / 'data', capsys)
  row = rows['reviews/books', 'train']
  assert f'  {digest[:12]} verified  already prepared; complete' in row


@pytest.mark.slow
def test_what_is_added_later_is_prepared_later(manual_dir, tmp_path, capsys):
  data_dir = tmp_path / 'data'
  aside = (manual_dir / 'svhn').rename(tmp_path / 'aside')
  with pytest.raises(UserError, match='Not prepared: digits/svhn'):
    _prepare('digits', manual_dir, data_dir, capsys)
  printed = capsys.readouterr().out
  assert 'missing: train_32x32.mat, test_32x32.mat' in printed
  assert f'looked in: {manual_dir / "svhn"}, ' in printed
  assert 'http://ufldl.stanford.edu/housenumbers/' in printed
  assert "tfds.load('svhn_cropped')" in printed
  aside.rename(manual_dir / 'svhn')
  rows = _prepare('digits', manual_dir, data_dir, capsys)
  assert ' prepared; subset' in rows['digits/svhn', 'train']
  assert 'already prepared' in rows['digits/mnist', 'train']


def test_tfds_own_mnist_serves_if_it_is_prepared(tmp_path, capsys, monkeypatch):
  """A data set as TFDS's own builder would have left it."""
  builder = tfds.builder('mnist', data_dir=tmp_path)
  images = made_up_files.random_image(0, (3, 28, 28, 1))

  def examples(*_):
    for index, image in enumerate(images):
      yield index, {'image': image, 'label': index}

  monkeypatch.setattr(
    builder, '_split_generators', lambda _: {'train': examples()}
  )
  builder.download_and_prepare()
  outcome = preparation.prepare_domain(
    'mnist', preparation.GROUPS['digits']['mnist'], tmp_path, str(tmp_path)
  )
  assert outcome.candidate.dataset == 'mnist'
  ((name, split, count, _, source, _, status),) = prepare.make_rows(
    'digits', outcome
  )
  assert (name, split, count) == ('digits/mnist', 'train', '3')
  assert (source, status) == ('mnist: TFDS', 'already prepared')


def test_a_corrupt_file_stops_one_domain_and_leaves_nothing(
  manual_dir, tmp_path, capsys
):
  files = made_up_files.office31_files()
  broken = 'office31/dslr/images/pen/frame_0002.jpg'
  files[broken] = files[broken][:1500]
  (manual_dir / 'office31' / 'office31.zip').unlink()
  made_up_files.pack(files, 'tar.gz', manual_dir / 'office31', 'office31')
  with pytest.raises(UserError, match=r'Not prepared: office31/dslr\.'):
    _prepare('office31', manual_dir, tmp_path / 'data', capsys)
  printed = capsys.readouterr().out
  assert 'office31/dslr: refused' in printed
  assert '1 of 6 files' in printed
  assert broken in printed
  assert list((tmp_path / 'data/office31/dslr').iterdir()) == []
  assert 'already prepared' not in printed
  loaded = tfds.load(
    'office31/webcam', split='train', data_dir=tmp_path / 'data', download=False
  )
  assert len(loaded) == 6


@pytest.mark.slow
def test_files_without_examples_stop_one_domain(manual_dir, tmp_path, capsys):
  made_up_files.write_mnist(manual_dir / 'mnist', test=0)
  with pytest.raises(UserError, match=r'Not prepared: digits/mnist\.'):
    _prepare('digits', manual_dir, tmp_path / 'data', capsys)
  rows = _table(capsys.readouterr().out)
  assert rows['digits/mnist', '0'].endswith('refused')
  assert ' prepared; subset' in rows['digits/svhn', 'train']


@pytest.mark.parametrize('group', ['digits', 'office31', 'reviews'])
def test_an_empty_folder_names_everything(tmp_path, capsys, group):
  (tmp_path / 'manual').mkdir()
  with pytest.raises(UserError, match='Not prepared'):
    _prepare(group, tmp_path / 'manual', tmp_path / 'data', capsys)
  printed = capsys.readouterr().out
  wanted = {
    'digits': ('train-images-idx3-ubyte.gz', 'mnist_m_train_labels', '32x32'),
    'office31': ('a folder with amazon, dslr, webcam or',),
    'reviews': ('amazon.npz',),
  }
  for name in wanted[group]:
    assert re.search(f'missing: .*{name}', printed)


def test_a_full_table_is_aligned():
  rows = [
    ('a', 'train', '1,000', '10', 's', '', 'x'),
    ('bb', 't', '7', *'2345'),
  ]
  header, *lines = prepare.format_table(rows).splitlines()
  end = header.index('images') + len('images')
  assert lines[0][:end].endswith(' 1,000')
  assert lines[1][:end].endswith('     7')
  start = header.index('source')
  assert [line[start] for line in lines] == ['s', '3']


def test_a_data_dir_that_cannot_be_made_is_named(tmp_path):
  (tmp_path / 'file').touch()
  with (
    pytest.raises(UserError, match='cannot write to the data_dir'),
    preparation.lock(pathlib.Path(tmp_path / 'file' / 'data')),
  ):
    pass
