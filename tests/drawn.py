"""What tests look for in the files that a study has drawn."""

import csv


def read_csv(path):
  with path.open() as file:
    return list(csv.DictReader(file))


def check_files(files):
  assert {file.suffix for file in files} == {'.png', '.pdf', '.csv'}
  assert all(file.stat().st_size for file in files)
