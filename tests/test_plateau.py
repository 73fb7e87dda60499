"""The study of starts: its runs, and what it says of them."""

import csv
import math

import pytest
from made_up_runs import write_run

from experiments import plateau
from experiments.runs import descriptions
from experiments.runs.scales import find_setting
from moda_jax.errors import UserError

TINY = find_setting('digits', 'tiny')
DOMAINS = ['mnist', 'uci', 'synth', 'mnistm']


def test_every_source_is_trained_alone_from_every_start(study_flags):
  requests = plateau.make_requests(['fm', 'moda'], ['he', 'torch'], 'mnistm')
  configs = [request.config() for request in requests]
  assert [c.network.init for c in configs] == ['he'] * 6 + ['torch'] * 6
  methods = [c.objective.method for c in configs[:6]]
  assert methods == ['fm', 'moda'] + ['source_only'] * 4
  alone = [config.data for config in configs[2:6]]
  assert sorted(data.sources for data in alone) == sorted(
    (name,) for name in DOMAINS
  )
  for data in alone:
    assert data.target not in data.sources
  with pytest.raises(UserError, match="names 'mnitm'; known are mnist"):
    plateau.make_requests(['fm'], ['he'], 'mnitm')


def test_one_source_on_the_plateau_is_enough(study_flags, tmp_path):
  lines = []
  requests = plateau.make_requests(['fm', 'moda'], ['he'], 'mnistm')
  for request, loss in zip(requests[:2], (0.5, math.log(10)), strict=True):
    losses = {'class/mnist': 0.25, 'class/synth': loss}
    write_run(request.folder, request.config(), **losses)
    lines += descriptions.describe_run(request.folder, TINY)
  files = plateau.draw(DOMAINS, TINY, lines, tmp_path / 'drawn')
  text, table = files
  assert 'all but 1 of 2.' in text.read_text()
  with table.open() as file:
    rows = list(csv.DictReader(file))
  assert [row['method'] for row in rows] == ['fm', 'moda']
  assert [row['synth'] for row in rows] == ['0.500', '2.303']
  assert [row['left the plateau'] for row in rows] == ['yes', 'no']
  assert rows[0]['mnistm'] == ''


def test_runs_without_class_losses_are_left_out(study_flags, tmp_path):
  (request,) = plateau.make_requests(['supervised'], ['he'], 'mnistm')[:1]
  write_run(request.folder, request.config(), **{'class/target': 0.5})
  (line,) = descriptions.describe_run(request.folder, TINY)
  assert plateau.final_losses(line) == {'target': 0.5}
  older = [{**line, 'curve': None}, {**line, 'curve': {'step': [1]}}]
  with pytest.raises(UserError, match='has recorded its class losses'):
    plateau.draw(DOMAINS, TINY, older, tmp_path / 'drawn')
  text, _ = plateau.draw(DOMAINS, TINY, [line, *older], tmp_path / 'drawn')
  assert 'all but 0 of 1.' in text.read_text()
  assert '| he | supervised | target |' in text.read_text()
